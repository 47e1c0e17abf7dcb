// Send queues: which requests are carried out at once, and which wait. Everything here needs the
// engine's lock.
#pragma once

#include <cstdint>

#include "core/session_state.hpp"
#include "device/queue_pair.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

/// Carries a request out at once, or queues it where it must wait. In ERR it is flushed.
void submit(session_state& state, sim_qp& qp, const send_request& request);

/// Carries out what the queue pair has queued, until a request must wait.
void run_send_queue(session_state& state, sim_qp& qp);

// A request waits for its responder: for a receive there, or for an answer. What may let it go on
// wakes its queue pair, and the call in which that happens ends with continue_waiting(). Costs: a
// wake is constant for each queue pair that it wakes.

/// A waiting queue pair changed its own state.
void wake(session_state& state, sim_qp& qp) noexcept;
/// The queue pair with this number changed its state, took a message, has a new receive, or was
/// destroyed. Every device has its own numbers, so others may be woken as well.
void wake_senders_to(session_state& state, std::uint32_t number) noexcept;
/// Memory or a window can be reached no more, which matters to requests whose memory is checked
/// while they wait.
void wake_those_behind_memory(session_state& state) noexcept;
/// Retries the woken ones, the first woken first, until no retry wakes another.
void continue_waiting(session_state& state);
/// Receives were posted to an SRQ: retries those that wait for them, the longest waiting first, as
/// long as there are receives.
void serve_waiting(session_state& state, sim_srq& srq);
/// Retries every waiting request: a port, a device or a GID changed. Costs: linear in the waiting
/// queue pairs.
void retry_waiting(session_state& state);

/// What waiting queue pairs are found by, beside the number of their peer: an SRQ, by its handle,
/// or by its XRC number.
[[nodiscard]] constexpr std::uint64_t shared_queue_key(std::uint32_t handle) noexcept {
  return std::uint64_t{1} << 32 | handle;
}
[[nodiscard]] constexpr std::uint64_t xrc_queue_key(std::uint32_t number) noexcept {
  return std::uint64_t{2} << 32 | number;
}

/// The queue pair waits for nothing any more.
void stop_waiting(session_state& state, sim_qp& qp);

}  // namespace ibvxx::shim
