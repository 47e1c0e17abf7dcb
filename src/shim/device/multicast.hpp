// Multicast memberships.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"

namespace ibvxx::shim {

namespace device {

int attach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);
int detach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);

}  // namespace device

}  // namespace ibvxx::shim
