#include "core/freed_list.hpp"

namespace ibvxx::shim {

void find_freed_list(call& c, const ibv_device* device) {
  if (!c.is_seen() || !device || c.state().objects.live(object_kind::device_list) != 0) return;
  for (const record& open : c.state().objects.live_of(object_kind::context))
    if (static_cast<const ibv_context*>(open.handle)->device == device) return;
  c.found(finding_kind::use_after_destroy,
          c.here() + " of " + device->name + " after the device list was freed");
}

}  // namespace ibvxx::shim
