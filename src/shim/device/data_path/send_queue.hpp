// Send queues: which requests are carried out at once, and which wait. Everything here needs the
// engine's lock.
#pragma once

#include "core/session_state.hpp"
#include "device/queue_pair.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

/// Carries a request out at once, or queues it where it must wait. In ERR it is flushed.
void submit(session_state& state, sim_qp& qp, const send_request& request);

/// Carries out what the queue pair has queued, until a request must wait. True if any request left
/// the queue.
bool run_send_queue(session_state& state, sim_qp& qp);

/// Retries every waiting request. Called when a receive was posted, when a queue pair changed its
/// state or was destroyed, when a port or device changed, and when memory was deregistered. Costs:
/// linear in the waiting queue pairs.
void retry_waiting(session_state& state);
/// Removes a queue pair from the retry list.
void stop_waiting(session_state& state, sim_qp& qp);

}  // namespace ibvxx::shim
