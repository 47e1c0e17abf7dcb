// Changing and querying queue pairs.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"
#include "device/queue_pair.hpp"

namespace ibvxx::shim {

namespace device {

int modify_qp_rate_limit(call& c, ibv_qp* qp, ibv_qp_rate_limit_attr* attributes);
int modify_qp(call& c, ibv_qp* qp, ibv_qp_attr* attributes, int mask);
int query_qp(call& c, ibv_qp* qp, ibv_qp_attr* out, int mask, ibv_qp_init_attr* init);
int query_ece(call& c, ibv_qp* qp, ibv_ece* ece);
int set_ece(call& c, ibv_qp* qp, ibv_ece* ece);
int query_qp_data_in_order(call& c, ibv_qp* qp, ibv_wr_opcode operation, std::uint32_t flags);

}  // namespace device

}  // namespace ibvxx::shim
