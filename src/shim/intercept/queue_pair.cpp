#include "intercept/queue_pair.hpp"

#include "device/queue_pair.hpp"
#include "intercept/intercept.hpp"
#include "intercept/wr_api.hpp"

namespace ibvxx::shim {
namespace {

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  return intercepted_maker(verb::create_qp_ex, &verbs_context::create_qp_ex, &device::create_qp_ex,
                           &intercept_qp, context, attributes);
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attributes) {
  return intercepted_maker(verb::open_qp, &verbs_context::open_qp, &device::open_qp, &intercept_qp,
                           context, attributes);
}

}  // namespace

void install_queue_pair_operations(verbs_context& context) noexcept {
  context.create_qp_ex = &create_qp_ex;
  context.open_qp = &open_qp;
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  return intercepted(verb::create_qp, exported{"ibv_create_qp"}, &device::create_qp, pd,
                     attributes);
}

int ibv_destroy_qp(ibv_qp* qp) {
  return intercepted(verb::destroy_qp, exported{"ibv_destroy_qp"}, &device::destroy_qp, qp);
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  return intercepted_uncounted(exported{"ibv_qp_to_qp_ex"}, &device::qp_to_qp_ex, qp);
}

}  // extern "C"
