// Findings about work requests and the memory that they name. Everything here needs the engine's
// lock. Costs: a check that finds nothing is logarithmic in the buffers posted and the regions; one
// that finds requests in use is linear in the queues and their requests.
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

// In strict sessions, when a request is posted: it is one that the device completes with an error.

/// Adds a finding if the send or receive queue accepts no request in this state.
void find_wrong_state(call& c, const sim_qp& qp, bool receives);
/// Adds a finding for each SGE with an unknown lkey, another domain, bytes outside the region, or
/// without the access that the request needs.
void find_wrong_memory(call& c, const sim_qp& qp, const send_request& request);
void find_wrong_memory(call& c, const record& queue, sim_device& device, const void* domain,
                       const receive_request& posted);
/// Adds a finding if another posted receive has bytes of the same buffer: the one that begins at
/// the lowest address. The buffers of `posted` are not indexed yet.
void find_reused_buffer(call& c, const record& queue, const receive_request& posted);

// Always.

/// Adds a finding, once for each CQ: `lost` is a completion for which the CQ had no entry left.
void find_undersized_queue(session_state& state, sim_cq& cq, const ibv_wc& lost);
/// Adds a finding if queued requests name a region that is destroyed or moved to other memory.
void find_memory_in_use(call& c, const sim_mr& region);
/// Called when the program frees or unmaps memory: adds a finding if queued requests name it. The
/// data path accesses those bytes of regions no more.
void find_freed_memory(const void* address, std::size_t length, const char* how);
/// Adds a finding, once for each region: a request accesses bytes that the program has freed or
/// unmapped.
void find_use_of_forgotten(sim_mr& region) noexcept;

}  // namespace ibvxx::shim
