#include "device/memory_window.hpp"

#include <cerrno>

#include "device/domain.hpp"
#include "device/memory.hpp"
#include "device/object.hpp"

namespace ibvxx::shim {
void unbind(sim_mw& window) noexcept {
  if (window.region) --window.region->windows;
  window.region = nullptr;
  window.qp_number = 0;
  window.address = window.length = 0;
  window.access = 0;
}

namespace device {

ibv_mw* alloc_mw(call& c, ibv_pd* pd, ibv_mw_type type) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (!owner->context->offers().memory_windows) return c.refuse_pointer(EOPNOTSUPP);
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return c.refuse_pointer(EINVAL);
  sim_device& device = *owner->context->device;
  if (is_full(device, object_kind::mw, owner->context->limits().max_mw))
    return c.refuse_pointer(owner->context->behaviour().too_many_objects);
  auto made = std::make_shared<sim_mw>();
  const std::uint32_t index = device.keys.take({0, nullptr, made.get()});
  if (index == 0) return c.refuse_pointer(ENOMEM);
  made->context = owner->context;
  made->domain = owner->domain;
  made->verbs.context = pd->context;
  made->verbs.pd = pd;
  made->verbs.type = type;
  made->verbs.handle = handle_of(c);
  made->rkey = index << 8 | 0x11;
  made->verbs.rkey = made->rkey;
  device.keys.find(index)->key = made->rkey;
  record_object(c, made, &made->verbs, device, {c.record_of(pd)});
  return &made->verbs;
}

int dealloc_mw(call& c, ibv_mw* mw) {
  auto* ending = c.ending<sim_mw>(mw);
  if (!ending) return c.refuse_code();
  const int code = c.destroy(mw);
  if (code == 0) {
    unbind(*ending);
    ending->context->device->keys.release(ending->rkey >> 8);
  }
  return c.concluded(code);
}

}  // namespace device
}  // namespace ibvxx::shim
