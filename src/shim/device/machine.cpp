#include "device/machine.hpp"

#include <set>
#include <stdexcept>
#include <string_view>

#include "device/completion_queue.hpp"
#include "device/context.hpp"
#include "device/events.hpp"
#include "device/memory.hpp"

namespace ibvxx::shim {

machine::machine(const simulated& described) {
  std::set<std::string_view> names;
  for (const device_description& one : described.devices) {
    if (!names.insert(one.name).second)
      throw std::invalid_argument("shim: simulated device '" + one.name +
                                  "': two devices have this name");
    devices.push_back(make_device(one, devices.size()));
  }
}

void machine::end(const ledger& objects) noexcept {
  count_regions(-static_cast<int>(regions.size()));
  regions.clear();
  for (const record& object : objects.records()) {
    if (!object.storage) continue;
    if (object.kind == object_kind::context)
      static_cast<sim_context*>(object.storage.get())->close_descriptors();
    if (object.kind == object_kind::comp_channel)
      static_cast<sim_comp_channel*>(object.storage.get())->close_descriptor();
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
