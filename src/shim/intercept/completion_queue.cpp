#include "intercept/completion_queue.hpp"

#include "device/completion_queue.hpp"
#include "intercept/intercept.hpp"
#include "intercept/polling.hpp"

namespace ibvxx::shim {
namespace {

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  return intercepted(verb::req_notify_cq, &ibv_context_ops::req_notify_cq, &device::req_notify_cq,
                     cq, solicited_only);
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes) {
  return intercepted(verb::modify_cq, &verbs_context::modify_cq, &device::modify_cq, cq,
                     attributes);
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  return intercepted_maker(verb::create_cq_ex, &verbs_context::create_cq_ex, &device::create_cq_ex,
                           &intercept_cq, context, attributes);
}

}  // namespace

void install_completion_queue_operations(verbs_context& context) noexcept {
  context.context.ops.req_notify_cq = &req_notify_cq;
  context.create_cq_ex = &create_cq_ex;
  context.modify_cq = &modify_cq;
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return intercepted(verb::create_comp_channel, exported{"ibv_create_comp_channel"},
                     &device::create_comp_channel, context);
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return intercepted(verb::destroy_comp_channel, exported{"ibv_destroy_comp_channel"},
                     &device::destroy_comp_channel, channel);
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int comp_vector) {
  return intercepted(verb::create_cq, exported{"ibv_create_cq"}, &device::create_cq, context, cqe,
                     cq_context, channel, comp_vector);
}

int ibv_resize_cq(ibv_cq* cq, int cqe) {
  return intercepted(verb::resize_cq, exported{"ibv_resize_cq"}, &device::resize_cq, cq, cqe);
}

int ibv_destroy_cq(ibv_cq* cq) {
  return intercepted(verb::destroy_cq, exported{"ibv_destroy_cq"}, &device::destroy_cq, cq);
}

}  // extern "C"
