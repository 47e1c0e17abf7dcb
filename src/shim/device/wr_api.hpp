// Posting to an extended queue pair, one call at a time: ibv_wr_*.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"
#include "device/queue_pair.hpp"

namespace ibvxx::shim {

/// Sets the functions of an extended queue pair that build a request, for the operations requested
/// at its creation.
void install_builders(sim_qp& made, std::uint64_t operations) noexcept;

namespace device {

void wr_start(call& c, ibv_qp_ex* handle);
int wr_complete(call& c, ibv_qp_ex* handle);
void wr_abort(call& c, ibv_qp_ex* handle);

}  // namespace device

}  // namespace ibvxx::shim
