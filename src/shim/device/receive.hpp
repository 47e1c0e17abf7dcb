// Shared receive queues.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"
#include "device/context.hpp"
#include "device/request_queue.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

struct sim_cq;

struct sim_srq {
  static constexpr object_kind kind = object_kind::srq;
  ibv_srq verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  ibv_srq_type type = IBV_SRQT_BASIC;
  ibv_srq_attr attr{};           // max_wr: the real capacity
  std::uint32_t number = 0;      // for XRC and tag matching
  const void* domain = nullptr;  // sim_pd::domain
  const void* xrc_domain = nullptr;
  sim_cq* cq = nullptr;    // for XRC and tag matching
  std::uint32_t tags = 0;  // handed out by post_srq_ops
  request_queue<receive_request> receives{};
};

namespace device {

ibv_srq* create_srq_ex(call& c, ibv_context* context, ibv_srq_init_attr_ex* a);
int get_srq_num(call& c, ibv_srq* srq, std::uint32_t* number);
int post_srq_ops(call& c, ibv_srq* srq, ibv_ops_wr* list, ibv_ops_wr** bad);
ibv_srq* create_srq(call& c, ibv_pd* pd, ibv_srq_init_attr* attributes);
int modify_srq(call& c, ibv_srq* srq, ibv_srq_attr* attributes, int mask);
int query_srq(call& c, ibv_srq* srq, ibv_srq_attr* out);
int destroy_srq(call& c, ibv_srq* srq);

}  // namespace device

}  // namespace ibvxx::shim
