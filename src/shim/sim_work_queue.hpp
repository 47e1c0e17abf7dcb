// Simulated work queues and indirection tables.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "sim_objects.hpp"

namespace ibvxx::shim {

struct sim_wq {
  static constexpr object_kind kind = object_kind::wq;
  ibv_wq verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  sim_cq* cq = nullptr;
  ibv_wq_state state = IBV_WQS_RESET;
  std::uint32_t flags = 0;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t posted = 0;
};

struct sim_rwq_ind_table {
  static constexpr object_kind kind = object_kind::rwq_ind_table;
  ibv_rwq_ind_table verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
};

}  // namespace ibvxx::shim
