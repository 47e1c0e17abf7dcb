// The fabric of a session's devices: the port at which packets to an address arrive.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "core/session_state.hpp"

namespace ibvxx::shim {

struct sim_context;
struct sim_device;

/// A port that packets arrive at.
struct destination {
  sim_device* device = nullptr;
  std::uint32_t port = 0;  // from 1; 0: nowhere
};

/// Where a GID was found last: places in the lists of devices, ports and GIDs.
struct route_hint {
  std::size_t device = 0;
  std::size_t port = 0;
  std::size_t gid = 0;
};

/// Where packets to this address arrive: the active port that has the GID, or, on InfiniBand
/// without a GRH, the LID. Nowhere if the port that they leave by is not active. Costs: constant
/// where the hint still holds, otherwise linear in the GIDs of the machine.
[[nodiscard]] destination route(session_state& state, const sim_context& from,
                                const ibv_ah_attr& address, route_hint& hint) noexcept;

/// The GID that packets with this address are sent from; zeros where there is none.
[[nodiscard]] ibv_gid source_gid(const sim_context& context, const ibv_ah_attr& address) noexcept;

/// The LID of the port that packets with this address are sent from; 0 where there is none.
[[nodiscard]] std::uint16_t source_lid(const sim_context& context,
                                       const ibv_ah_attr& address) noexcept;

}  // namespace ibvxx::shim
