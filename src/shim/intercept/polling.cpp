#include "intercept/polling.hpp"

#include "device/polling.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

int poll_cq(ibv_cq* cq, int room, ibv_wc* out) {
  return intercepted(verb::poll_cq, &ibv_context_ops::poll_cq, &device::poll_cq, cq, room, out);
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  return intercepted(verb::start_poll, &object_operations::start_poll, &device::start_poll, cq,
                     attributes);
}

int next_poll(ibv_cq_ex* cq) {
  return intercepted(verb::next_poll, &object_operations::next_poll, &device::next_poll, cq);
}

void end_poll(ibv_cq_ex* cq) {
  return intercepted(verb::end_poll, &object_operations::end_poll, &device::end_poll, cq);
}

}  // namespace

void install_polling_operations(verbs_context& context) noexcept {
  context.context.ops.poll_cq = &poll_cq;
}

void intercept_cq(call& c, ibv_cq_ex* made) {
  if (c.forwarded()) {
    remember_operations(made, {.start_poll = replace(made->start_poll, &start_poll),
                               .next_poll = replace(made->next_poll, &next_poll),
                               .end_poll = replace(made->end_poll, &end_poll)});
    return;
  }
  made->start_poll = &start_poll;
  made->next_poll = &next_poll;
  made->end_poll = &end_poll;
}

}  // namespace ibvxx::shim
