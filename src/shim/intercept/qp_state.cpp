#include "intercept/qp_state.hpp"

#include "device/qp_state.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* attributes) {
  return intercepted(verb::modify_qp_rate_limit, &verbs_context::modify_qp_rate_limit,
                     &device::modify_qp_rate_limit, qp, attributes);
}

}  // namespace

void install_qp_state_operations(verbs_context& context) noexcept {
  context.modify_qp_rate_limit = &modify_qp_rate_limit;
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return intercepted(verb::modify_qp, exported{"ibv_modify_qp"}, &device::modify_qp, qp, attributes,
                     mask);
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* out, int mask, ibv_qp_init_attr* init) {
  return intercepted(verb::query_qp, exported{"ibv_query_qp"}, &device::query_qp, qp, out, mask,
                     init);
}

int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  return intercepted(verb::query_ece, exported{"ibv_query_ece"}, &device::query_ece, qp, ece);
}

int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  return intercepted(verb::set_ece, exported{"ibv_set_ece"}, &device::set_ece, qp, ece);
}

int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode operation, std::uint32_t flags) {
  return intercepted(verb::query_qp_data_in_order, exported{"ibv_query_qp_data_in_order"},
                     &device::query_qp_data_in_order, qp, operation, flags);
}

}  // extern "C"
