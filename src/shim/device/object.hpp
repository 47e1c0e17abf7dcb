// Functions for the files that make simulated objects. Header only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "core/call.hpp"
#include "device/context.hpp"
#include "device/device.hpp"

namespace ibvxx::shim {

/// Records a new object, and counts it among its device's.
template <class Sim>
record& record_object(call& c, const std::shared_ptr<Sim>& made, const void* handle,
                      sim_device& device, std::span<record* const> parents) {
  record& object = c.add(made, handle, device.described.name, parents);
  object.live_counts = &device.live_counts[static_cast<std::size_t>(Sim::kind)];
  ++*object.live_counts;
  object.lost = &device.lost;
  return object;
}
template <class Sim>
record& record_object(call& c, const std::shared_ptr<Sim>& made, const void* handle,
                      sim_device& device, std::initializer_list<record*> parents) {
  return record_object(c, made, handle, device, std::span(parents.begin(), parents.size()));
}

/// The kernel's handle of the object that this call makes: a number unique in the session.
[[nodiscard]] inline std::uint32_t handle_of(const call& c) noexcept {
  return static_cast<std::uint32_t>(c.state().objects.records().size() + 1);
}

/// The live object of a kind with this kernel handle, on one device, or null. Costs: linear in the
/// objects of the session.
template <class Sim>
[[nodiscard]] Sim* find_handle(const call& c, const sim_device& device,
                               std::uint32_t handle) noexcept {
  for (const record& object : c.state().objects.records()) {
    if (!object.live || object.kind != Sim::kind) continue;
    auto* candidate = static_cast<Sim*>(object.storage.get());
    if (candidate->context->device.get() == &device && candidate->verbs.handle == handle)
      return candidate;
  }
  return nullptr;
}

/// The device of an object's context.
template <class Sim>
[[nodiscard]] sim_device& device_of(const Sim& object) noexcept {
  return *object.context->device;
}

}  // namespace ibvxx::shim
