// Messages that take a receive. Everything here needs the engine's lock.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/session_state.hpp"
#include "device/data_path/wire.hpp"
#include "device/queue_pair.hpp"

namespace ibvxx::shim {

/// What became of a message that takes a receive.
enum class arrival : std::uint8_t {
  taken,
  nothing_posted,
  too_long,         ///< the queue pair is in ERR
  failed,           ///< the queue pair is in ERR
  completion_lost,  ///< the data has arrived, and the queue pair is in ERR
};

/// Whether a receive is posted for a message that may name an SRQ.
[[nodiscard]] bool can_receive(sim_qp& qp, std::uint32_t srq_number) noexcept;
/// Completes the next receive, which the message would have taken, with an error; the queue pair
/// enters ERR.
void fail_receive(session_state& state, sim_qp& qp, const message& arriving, ibv_wc_status status);
/// Takes the next receive, copies, and completes.
[[nodiscard]] arrival receive(session_state& state, sim_qp& qp, const message& arriving);

}  // namespace ibvxx::shim
