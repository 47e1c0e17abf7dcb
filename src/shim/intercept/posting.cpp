#include "intercept/posting.hpp"

#include "device/posting.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

int post_send(ibv_qp* handle, ibv_send_wr* list, ibv_send_wr** bad) {
  return intercepted(verb::post_send, list_operation{&ibv_context_ops::post_send},
                     &device::post_send, handle, list, bad);
}

int bind_mw(ibv_qp* handle, ibv_mw* mw, ibv_mw_bind* bind) {
  return intercepted(verb::bind_mw, &ibv_context_ops::bind_mw, &device::bind_mw, handle, mw, bind);
}

int post_recv(ibv_qp* handle, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return intercepted(verb::post_recv, list_operation{&ibv_context_ops::post_recv},
                     &device::post_recv, handle, list, bad);
}

int post_srq_recv(ibv_srq* handle, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return intercepted(verb::post_srq_recv, list_operation{&ibv_context_ops::post_srq_recv},
                     &device::post_srq_recv, handle, list, bad);
}

}  // namespace

void install_posting_operations(verbs_context& context) noexcept {
  context.context.ops.post_send = &post_send;
  context.context.ops.post_recv = &post_recv;
  context.context.ops.post_srq_recv = &post_srq_recv;
  context.context.ops.bind_mw = &bind_mw;
}

}  // namespace ibvxx::shim
