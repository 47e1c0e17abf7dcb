// The responder's half of the data path. Everything here needs the engine's lock.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/session_state.hpp"
#include "device/data_path/wire.hpp"
#include "device/device.hpp"

namespace ibvxx::shim {

/// A message of a connected queue pair arrives at a port: finds the queue pair that it is for,
/// checks its place in the sequence, and carries it out.
[[nodiscard]] response respond(session_state& state, sim_device& device, std::uint32_t port,
                               const message& arriving);

/// A datagram arrives at a port, or at every member of a multicast group on the device. It is
/// dropped without an answer where a queue pair does not take it.
void receive_datagram(session_state& state, sim_device& device, std::uint32_t port,
                      const message& arriving);
void receive_multicast(session_state& state, sim_device& device, const ibv_gid& group,
                       const message& arriving);

}  // namespace ibvxx::shim
