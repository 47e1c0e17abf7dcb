// What the files that define intercepted functions share.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <ibvxx/shim/device.hpp>
#include <initializer_list>
#include <memory>
#include <span>

#include "engine.hpp"
#include "forwarding.hpp"
#include "sim_device.hpp"

namespace ibvxx::shim {

/// Fills in an entry of a GID table; false for an empty slot.
inline bool fill_gid_entry(const port_description& port, std::uint32_t number, std::uint32_t index,
                           ibv_gid_entry& out) noexcept {
  if (index >= port.gids.size()) return false;
  const gid_slot& slot = port.gids[index];
  if (slot.gid.global.subnet_prefix == 0 && slot.gid.global.interface_id == 0) return false;
  out.gid = slot.gid;
  out.gid_index = index;
  out.port_num = number;
  out.gid_type = static_cast<std::uint32_t>(slot.type);
  out.ndev_ifindex = slot.ndev_ifindex;
  return true;
}

/// Writes down a new object, and counts it among its device's.
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

/// Whether the device holds as many objects of a kind as it can.
[[nodiscard]] inline bool is_full(const sim_device& device, object_kind kind, int limit) noexcept {
  return limit >= 0 &&
         device.live_counts[static_cast<std::size_t>(kind)] >= static_cast<unsigned>(limit);
}

/// The number by which the kernel would know what this call makes.
[[nodiscard]] inline std::uint32_t handle_of(const call& c) noexcept {
  return static_cast<std::uint32_t>(c.state().objects.records().size() + 1);
}

/// The live object of a kind with this kernel handle, on one device, or null.
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

/// Puts the operations that verbs.h calls through the context in place: all, by family.
void install_operations(verbs_context& context) noexcept;
void install_device_operations(verbs_context& context) noexcept;
void install_domain_operations(verbs_context& context) noexcept;
void install_memory_operations(verbs_context& context) noexcept;
void install_memory_window_operations(verbs_context& context) noexcept;
void install_device_memory_operations(verbs_context& context) noexcept;
void install_completion_operations(verbs_context& context) noexcept;
void install_polling_operations(verbs_context& context) noexcept;
void install_queue_pair_operations(verbs_context& context) noexcept;
void install_qp_state_operations(verbs_context& context) noexcept;
void install_posting_operations(verbs_context& context) noexcept;
void install_receive_operations(verbs_context& context) noexcept;
void install_work_queue_operations(verbs_context& context) noexcept;
void install_flow_operations(verbs_context& context) noexcept;

/// The same for a real object that was just made.
void intercept_polling(ibv_cq_ex& cq);
void intercept_wr_api(ibv_qp& real);

}  // namespace ibvxx::shim
