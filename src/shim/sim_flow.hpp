// Simulated flows, flow actions, and counters.
#pragma once

#include <infiniband/verbs.h>

#include <map>

#include "sim_objects.hpp"

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

}  // namespace ibvxx::shim
