#include "core/freed_list.hpp"

#include <string>

namespace ibvxx::shim {

void find_freed_list(call& c, const char* device) {
  if (c.is_seen() && c.state().objects.live(object_kind::device_list) == 0)
    c.found(finding_kind::use_after_destroy, std::string("ibv_open_device of ") + device +
                                                 " (call " + std::to_string(c.index()) +
                                                 ") after the device list was freed");
}

}  // namespace ibvxx::shim
