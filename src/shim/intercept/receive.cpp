#include "intercept/receive.hpp"

#include "device/receive.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* a) {
  return intercepted(verb::create_srq_ex, &verbs_context::create_srq_ex, &device::create_srq_ex,
                     context, a);
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
  return intercepted(verb::get_srq_num, &verbs_context::get_srq_num, &device::get_srq_num, srq,
                     number);
}

int post_srq_ops(ibv_srq* srq, ibv_ops_wr* list, ibv_ops_wr** bad) {
  return intercepted(verb::post_srq_ops, &verbs_context::post_srq_ops, &device::post_srq_ops, srq,
                     list, bad);
}

}  // namespace

void install_receive_operations(verbs_context& context) noexcept {
  context.create_srq_ex = &create_srq_ex;
  context.get_srq_num = &get_srq_num;
  context.post_srq_ops = &post_srq_ops;
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  return intercepted(verb::create_srq, exported{"ibv_create_srq"}, &device::create_srq, pd,
                     attributes);
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  return intercepted(verb::modify_srq, exported{"ibv_modify_srq"}, &device::modify_srq, srq,
                     attributes, mask);
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* out) {
  return intercepted(verb::query_srq, exported{"ibv_query_srq"}, &device::query_srq, srq, out);
}

int ibv_destroy_srq(ibv_srq* srq) {
  return intercepted(verb::destroy_srq, exported{"ibv_destroy_srq"}, &device::destroy_srq, srq);
}

}  // extern "C"
