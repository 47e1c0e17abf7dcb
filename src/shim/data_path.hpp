// The data path: what becomes of posted requests. Everything here needs the session's lock.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "engine.hpp"
#include "sim_queue_pair.hpp"
#include "sim_work.hpp"

namespace ibvxx::shim {

/// Puts a completion into a queue and wakes who waits for it. False where the queue is full: the
/// completion is lost, and IBV_EVENT_CQ_ERR is raised.
bool complete(session_state& state, sim_cq& cq, const completion& done, bool solicited);

/// Takes a request: carries it out at once, or queues it where it must wait. In state ERR it is
/// flushed.
void submit(session_state& state, sim_qp& qp, const send_request& request);

/// Carries out what the queue pair has queued, as far as it goes. True if anything moved.
bool run_send_queue(session_state& state, sim_qp& qp);

/// Gives every request that waits for somebody else another try. To be called when a receive was
/// posted, when a queue pair came up, broke or went, when a port or device did, and when memory
/// went that a request may name.
void retry_waiting(session_state& state);

/// It waits for nobody any more.
void stop_waiting(session_state& state, sim_qp& qp);

/// The queue pair breaks: state ERR, and what is queued is flushed.
void enter_error(session_state& state, sim_qp& qp);
/// The send queue of a queue pair in SQD has drained: the event, where it was asked for.
void tell_drained(sim_qp& qp);
/// Forgets what is queued, without completions: on the way to RESET, and when it is destroyed.
void forget_work(session_state& state, sim_qp& qp);
/// Receives of a queue pair in state ERR are flushed.
void flush_receives(session_state& state, sim_qp& qp);

/// Raises an async event of a queue pair or of an SRQ. The one way by which the data path raises
/// events, but for those of completion queues.
void raise_qp_event(sim_qp& qp, ibv_event_type type);
void raise_srq_event(sim_srq& srq, ibv_event_type type);

/// What comes of a request.
enum class progress : std::uint8_t {
  done,     ///< completed, well or not
  waiting,  ///< must stay in the queue
};

/// Carries out one request on a queue pair that is in RTS (data_requester.cpp).
[[nodiscard]] progress execute(session_state& state, sim_qp& qp, const send_request& request);

/// Writes the requester's completion, where there is to be one: always when it failed.
void complete_send(session_state& state, sim_qp& qp, const send_request& request,
                   ibv_wc_status status);
/// The same when it failed: the queue pair breaks as well.
void fail_send(session_state& state, sim_qp& qp, const send_request& request, ibv_wc_status status);

}  // namespace ibvxx::shim
