// Flows, flow actions, and counters.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>

#include "core/call.hpp"
#include "device/context.hpp"

namespace ibvxx::shim {

struct sim_flow {
  static constexpr object_kind kind = object_kind::flow;
  ibv_flow verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
};

struct sim_flow_action {
  static constexpr object_kind kind = object_kind::flow_action;
  ibv_flow_action verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
};

struct sim_counters {
  static constexpr object_kind kind = object_kind::counters;
  ibv_counters verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  std::map<std::uint32_t, ibv_counter_description> meanings{};  // by index
};

namespace device {

ibv_flow* create_flow(call& c, ibv_qp* qp, ibv_flow_attr* a);
int destroy_flow(call& c, ibv_flow* flow);
ibv_flow_action* create_flow_action_esp(call& c, ibv_context* context, ibv_flow_action_esp_attr* a);
int modify_flow_action_esp(call& c, ibv_flow_action* action, ibv_flow_action_esp_attr* a);
int destroy_flow_action(call& c, ibv_flow_action* action);
ibv_counters* create_counters(call& c, ibv_context* context, ibv_counters_init_attr* a);
int attach_counters_point_flow(call& c, ibv_counters* counters, ibv_counter_attach_attr* a,
                               ibv_flow* flow);
int read_counters(call& c, ibv_counters* counters, std::uint64_t* values, std::uint32_t count,
                  std::uint32_t flags);
int destroy_counters(call& c, ibv_counters* counters);

}  // namespace device

}  // namespace ibvxx::shim
