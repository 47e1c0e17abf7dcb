// Datagrams, to one queue pair or to a multicast group: the requester's half.
#pragma once

#include "core/session_state.hpp"
#include "device/data_path/memory.hpp"
#include "device/queue_pair.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

/// Sends a datagram to its address. It may be dropped: there is no response. Needs the engine's
/// lock.
void send_datagram(session_state& state, sim_qp& qp, const send_request& request,
                   const segment_list& local);

}  // namespace ibvxx::shim
