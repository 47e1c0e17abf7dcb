#include "intercept/flow.hpp"

#include "device/flow.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* a) {
  return intercepted(verb::create_flow, &verbs_context::ibv_create_flow, &device::create_flow, qp,
                     a);
}

int destroy_flow(ibv_flow* flow) {
  return intercepted(verb::destroy_flow, &verbs_context::ibv_destroy_flow, &device::destroy_flow,
                     flow);
}

ibv_flow_action* create_flow_action_esp(ibv_context* context, ibv_flow_action_esp_attr* a) {
  return intercepted(verb::create_flow_action_esp, &verbs_context::create_flow_action_esp,
                     &device::create_flow_action_esp, context, a);
}

int modify_flow_action_esp(ibv_flow_action* action, ibv_flow_action_esp_attr* a) {
  return intercepted(verb::modify_flow_action_esp, &verbs_context::modify_flow_action_esp,
                     &device::modify_flow_action_esp, action, a);
}

int destroy_flow_action(ibv_flow_action* action) {
  return intercepted(verb::destroy_flow_action, &verbs_context::destroy_flow_action,
                     &device::destroy_flow_action, action);
}

ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* a) {
  return intercepted(verb::create_counters, &verbs_context::create_counters,
                     &device::create_counters, context, a);
}

int attach_counters_point_flow(ibv_counters* counters, ibv_counter_attach_attr* a, ibv_flow* flow) {
  return intercepted(verb::attach_counters_point_flow, &verbs_context::attach_counters_point_flow,
                     &device::attach_counters_point_flow, counters, a, flow);
}

int read_counters(ibv_counters* counters, std::uint64_t* values, std::uint32_t count,
                  std::uint32_t flags) {
  return intercepted(verb::read_counters, &verbs_context::read_counters, &device::read_counters,
                     counters, values, count, flags);
}

int destroy_counters(ibv_counters* counters) {
  return intercepted(verb::destroy_counters, &verbs_context::destroy_counters,
                     &device::destroy_counters, counters);
}

}  // namespace

void install_flow_operations(verbs_context& context) noexcept {
  context.ibv_create_flow = &create_flow;
  context.ibv_destroy_flow = &destroy_flow;
  context.create_flow_action_esp = &create_flow_action_esp;
  context.modify_flow_action_esp = &modify_flow_action_esp;
  context.destroy_flow_action = &destroy_flow_action;
  context.create_counters = &create_counters;
  context.attach_counters_point_flow = &attach_counters_point_flow;
  context.read_counters = &read_counters;
  context.destroy_counters = &destroy_counters;
}

}  // namespace ibvxx::shim
