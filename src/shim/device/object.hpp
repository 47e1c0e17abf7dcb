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

/// The key of objects that are imported by their kernel handle.
template <class Sim>
[[nodiscard]] std::uint64_t handle_key(std::uint32_t handle) noexcept {
  return static_cast<std::uint64_t>(Sim::kind) << 32 | handle;
}
/// Records a new object, and counts it among its device's.
template <class Sim>
record& record_object(call& c, const std::shared_ptr<Sim>& made, const void* handle,
                      sim_device& device, std::span<record* const> parents) {
  record& object = c.add(made, handle, device.described.name, parents);
  object.live_counts = &device.live_counts[static_cast<std::size_t>(Sim::kind)];
  ++*object.live_counts;
  object.lost = &device.lost;
  if constexpr (Sim::kind == object_kind::pd || Sim::kind == object_kind::mr ||
                Sim::kind == object_kind::dm)
    c.state().objects.index(object, handle_key<Sim>(made->verbs.handle));
  return object;
}
template <class Sim>
record& record_object(call& c, const std::shared_ptr<Sim>& made, const void* handle,
                      sim_device& device, std::initializer_list<record*> parents) {
  return record_object(c, made, handle, device, std::span(parents.begin(), parents.size()));
}

/// The kernel's handle of the object that this call makes: a number unique in the session.
[[nodiscard]] inline std::uint32_t handle_of(const call& c) noexcept {
  return static_cast<std::uint32_t>(c.state().objects.created() + 1);
}

/// The oldest live object of a kind with this kernel handle, on one device, or null. Costs:
/// logarithmic in the live objects that can be imported.
template <class Sim>
[[nodiscard]] record* find_handle(const call& c, const sim_device& device,
                                  std::uint32_t handle) noexcept {
  return c.state().objects.find_by_key(handle_key<Sim>(handle), [&](const record& object) {
    if (object.kind != Sim::kind) return false;
    const auto* candidate = static_cast<const Sim*>(object.storage.get());
    return candidate->context->device.get() == &device && candidate->verbs.handle == handle;
  });
}
/// The object of a record.
template <class Sim>
[[nodiscard]] Sim& object_of(const record& object) noexcept {
  return *static_cast<Sim*>(object.storage.get());
}

/// The device of an object's context.
template <class Sim>
[[nodiscard]] sim_device& device_of(const Sim& object) noexcept {
  return *object.context->device;
}

}  // namespace ibvxx::shim
