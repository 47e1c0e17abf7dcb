// The fabric that joins all devices of a session.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>

#include "engine.hpp"
#include "sim_queue_pair.hpp"

namespace ibvxx::shim {

/// Where an address leads, as places in the lists of devices, ports and GIDs.
struct destination {
  sim_device* device = nullptr;
  std::uint32_t port = 0;  // from 1; 0: nowhere
};

/// Where packets to this address arrive: the active port that has the GID, or, on InfiniBand
/// without a GRH, the LID. Nowhere if the port that they leave by is not active. `hint` remembers
/// the place.
[[nodiscard]] destination route(session_state& state, const sim_context& from,
                                const ibv_ah_attr& address, std::size_t (&hint)[3]) noexcept;

/// The queue pair that a connected one talks to, or null: unreachable, gone, of another type, or
/// one that expects packets from elsewhere.
[[nodiscard]] sim_qp* find_peer(session_state& state, sim_qp& qp) noexcept;

/// The GID that packets with this address are sent from; zeros where there is none.
[[nodiscard]] ibv_gid source_gid(const sim_context& context, const ibv_ah_attr& address) noexcept;

[[nodiscard]] bool same_gid(const ibv_gid& a, const ibv_gid& b) noexcept;
/// An IPv4 address in a GID.
[[nodiscard]] bool is_v4_gid(const ibv_gid& gid) noexcept;

}  // namespace ibvxx::shim
