// What a program does wrong with work requests and the memory that they name. Everything here needs
// the session's lock.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine.hpp"
#include "sim_memory.hpp"
#include "sim_queue_pair.hpp"
#include "sim_work.hpp"

namespace ibvxx::shim {

// In strict sessions: what the device answers with an error, told of when it is posted.

/// A request for a send queue that takes none in this state, or for a receive queue.
void find_wrong_state(call& c, const sim_qp& qp, bool receives);
/// Memory that a request names and that is not there, or not for this use.
void find_wrong_memory(call& c, const sim_qp& qp, const send_request& request);
void find_wrong_memory(call& c, const record& queue, sim_device& device, const void* domain,
                       const receive_request& posted);
/// A receive whose buffer another posted receive has, too. `posted` is in its queue already.
void find_reused_buffer(call& c, const record& queue, const receive_request& posted);

// Always.

/// A completion of `qp_number` was lost since its queue was full.
void find_undersized_queue(session_state& state, sim_cq& cq, const ibv_wc& lost);
/// A region goes, or is moved elsewhere, while requests name it.
void find_memory_in_use(call& c, const sim_mr& region);
/// Memory of the program is freed or unmapped: what is told of it, and which bytes of regions are
/// no memory any more.
void forget_memory(call& c, const void* address, std::size_t length, const char* how);
/// A request is about bytes that the program has freed or unmapped.
void find_use_of_forgotten(sim_mr& region) noexcept;

/// Whether a list of requests never ends.
template <class Request>
[[nodiscard]] bool is_endless(const Request* list) noexcept {
  // Brent's: the tortoise jumps to the hare at every power of two.
  const Request* tortoise = list;
  std::size_t steps = 0;
  std::size_t limit = 2;
  for (const Request* hare = list ? list->next : nullptr; hare; hare = hare->next) {
    if (hare == tortoise) return true;
    if (++steps == limit) {
      tortoise = hare;
      steps = 0;
      limit *= 2;
    }
  }
  return false;
}
/// The same, with a finding.
template <class Request>
[[nodiscard]] bool refuse_endless(call& c, const Request* list) noexcept {
  if (!list || !list->next || !is_endless(list)) [[likely]]
    return false;
  c.found(finding_kind::foreign_pointer,
          c.here() + " was given a list of requests that leads back into itself");
  return true;
}

}  // namespace ibvxx::shim
