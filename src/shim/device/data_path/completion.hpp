// Completions, and queue pairs that enter ERR. Everything here needs the engine's lock.
#pragma once

#include <infiniband/verbs.h>

#include "core/session_state.hpp"
#include "device/completion_queue.hpp"
#include "device/queue_pair.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

/// Puts a completion into a queue and raises its event if it is armed. False where the queue is
/// full: the completion is lost, and IBV_EVENT_CQ_ERR is raised.
bool complete(session_state& state, sim_cq& cq, const completion& done, bool solicited);

/// Writes the requester's completion, if the request is signaled or has failed.
void complete_send(session_state& state, sim_qp& qp, const send_request& request,
                   ibv_wc_status status);
/// complete_send() for a failure, after which the queue pair enters ERR or SQE.
void fail_send(session_state& state, sim_qp& qp, const send_request& request, ibv_wc_status status);

/// Enters ERR and flushes the queued requests.
void enter_error(session_state& state, sim_qp& qp);
/// The send queue of a queue pair in SQD has drained: raises the event.
void raise_drained(sim_qp& qp);
/// Discards the queued requests without completions: for RESET and for a destroy. Costs: linear in
/// those, and on hardware's behaviour in the completions of its queues that are not polled, as
/// mlx5's is.
void clear_work(session_state& state, sim_qp& qp);
/// Flushes the receives of a queue pair in ERR.
void flush_receives(session_state& state, sim_qp& qp);

}  // namespace ibvxx::shim
