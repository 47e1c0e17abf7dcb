// Work queues and indirection tables.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"
#include "device/context.hpp"

namespace ibvxx::shim {

struct sim_cq;

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

namespace device {

int post_wq_recv(call& c, ibv_wq* wq, ibv_recv_wr* list, ibv_recv_wr** bad);
/// ibv_wq::post_recv is null: intercept/ sets it.
ibv_wq* create_wq(call& c, ibv_context* context, ibv_wq_init_attr* a);
int modify_wq(call& c, ibv_wq* wq, ibv_wq_attr* a);
int destroy_wq(call& c, ibv_wq* wq);
ibv_rwq_ind_table* create_rwq_ind_table(call& c, ibv_context* context,
                                        ibv_rwq_ind_table_init_attr* a);
int destroy_rwq_ind_table(call& c, ibv_rwq_ind_table* table);

}  // namespace device

}  // namespace ibvxx::shim
