#include "device/machine.hpp"

#include <set>
#include <stdexcept>
#include <string_view>

#include "core/multicast_membership.hpp"
#include "device/completion_queue.hpp"
#include "device/context.hpp"
#include "device/events.hpp"
#include "device/memory.hpp"
#include "device/memory_window.hpp"
#include "device/multicast.hpp"
#include "device/object.hpp"
#include "device/queue_pair.hpp"
#include "device/receive.hpp"

namespace ibvxx::shim {

machine::machine(const simulated& described) {
  std::set<std::string_view> names;
  for (const device_description& one : described.devices) {
    if (!names.insert(one.name).second)
      throw std::invalid_argument("shim: simulated device '" + one.name +
                                  "': two devices have this name");
    devices.push_back(make_device(one, devices.size()));
    devices.back()->posted = &posted;
  }
}

void machine::end(const ledger& objects) noexcept {
  count_regions(-static_cast<int>(regions.size()));
  regions = {};
  objects.for_each([](const record& object) {
    if (object.kind == object_kind::context) object_of<sim_context>(object).close_descriptors();
    if (object.kind == object_kind::comp_channel)
      object_of<sim_comp_channel>(object).close_descriptor();
  });
}

void machine::drop(const record& object) noexcept {
  session_state& state = *engine::current_or_none();
  switch (object.kind) {
    case object_kind::mr: {
      auto& region = object_of<sim_mr>(object);
      if (!region.imported) forget_region(*this, region);
      break;
    }
    case object_kind::mw: {
      auto& window = object_of<sim_mw>(object);
      unbind(window);
      window.context->device->keys.release(window.rkey >> 8);
      break;
    }
    case object_kind::qp: {
      sim_qp& itself = *object_of<sim_qp>(object).original;
      if (--itself.users == 0) end_queue_pair(state, itself);
      break;
    }
    case object_kind::srq: {
      auto& queue = object_of<sim_srq>(object);
      queue.receives.release();
      if (queue.number != 0) queue.context->device->srqs.release(queue.number);
      break;
    }
    case object_kind::multicast_membership: {
      const auto& one = object_of<multicast_membership>(object);
      auto& member = object_of<sim_qp>(*object.parents.front().parent);
      if (member.groups.contains(key_of(one.gid))) leave_group(member, key_of(one.gid));
      break;
    }
    default:
      break;
  }
}

sim_device* device_called(session_state& state, const std::string& name) noexcept {
  if (state.forwards()) return nullptr;
  for (const auto& device : machine_of(state).devices)
    if (device->described.name == name) return device.get();
  return nullptr;
}

void remove_device(session_state& state, sim_device& device) {
  device.lost = true;
  ibv_async_event event{};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  raise_async_event(state, device, event);
}

}  // namespace ibvxx::shim
