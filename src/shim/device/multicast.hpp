// Multicast memberships.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"
#include "device/queue_pair.hpp"

namespace ibvxx::shim {

/// Ends a membership, which must exist.
void leave_group(sim_qp& member, const gid_key& group) noexcept;

namespace device {

int attach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);
int detach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);

}  // namespace device

}  // namespace ibvxx::shim
