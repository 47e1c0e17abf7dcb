#include "intercept/work_queue.hpp"

#include "device/work_queue.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

int post_wq_recv(ibv_wq* wq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return intercepted(verb::post_wq_recv, list_operation{&object_operations::post_recv},
                     &device::post_wq_recv, wq, list, bad);
}

int modify_wq(ibv_wq* wq, ibv_wq_attr* a) {
  return intercepted(verb::modify_wq, &verbs_context::modify_wq, &device::modify_wq, wq, a);
}

int destroy_wq(ibv_wq* wq) {
  return intercepted(verb::destroy_wq, &verbs_context::destroy_wq, &device::destroy_wq, wq);
}

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* a) {
  return intercepted(verb::create_rwq_ind_table, &verbs_context::create_rwq_ind_table,
                     &device::create_rwq_ind_table, context, a);
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* table) {
  return intercepted(verb::destroy_rwq_ind_table, &verbs_context::destroy_rwq_ind_table,
                     &device::destroy_rwq_ind_table, table);
}

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attributes) {
  return intercepted_maker(verb::create_wq, &verbs_context::create_wq, &device::create_wq,
                           &intercept_wq, context, attributes);
}

}  // namespace

void install_work_queue_operations(verbs_context& context) noexcept {
  context.create_wq = &create_wq;
  context.modify_wq = &modify_wq;
  context.destroy_wq = &destroy_wq;
  context.create_rwq_ind_table = &create_rwq_ind_table;
  context.destroy_rwq_ind_table = &destroy_rwq_ind_table;
}

void intercept_wq(call& c, ibv_wq* made) {
  if (c.forwarded())
    remember_operations(made, {.post_recv = replace(made->post_recv, &post_wq_recv)});
  else
    made->post_recv = &post_wq_recv;
}

}  // namespace ibvxx::shim
