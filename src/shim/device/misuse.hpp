// What a program does wrong with work requests and the memory that they name. Everything here needs
// the engine's lock. Costs: the checks of strict sessions and those of memory are linear in the
// objects of the session.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "core/call.hpp"
#include "device/completion_queue.hpp"
#include "device/memory.hpp"
#include "device/queue_pair.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

// In strict sessions: requests that the device completes with an error, found when they are posted.

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
/// A region is destroyed, or moved elsewhere, while requests name it.
void find_memory_in_use(call& c, const sim_mr& region);
/// Memory of the program is freed or unmapped: a finding where requests name it. The bytes of
/// regions in it are not touched any more.
void find_freed_memory(const void* address, std::size_t length, const char* how);
/// A request is about bytes that the program has freed or unmapped.
void find_use_of_forgotten(sim_mr& region) noexcept;

}  // namespace ibvxx::shim
