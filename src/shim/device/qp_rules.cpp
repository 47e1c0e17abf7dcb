#include "device/qp_rules.hpp"

#include <initializer_list>

namespace ibvxx::shim {
namespace {

/// Required and optional attributes of one transition for one type of queue pair.
struct needs {
  ibv_qp_type type;
  int required;
  int optional;
};

struct transition {
  ibv_qp_state from;
  ibv_qp_state to;
  std::initializer_list<needs> by_type;
};

constexpr int init_connected = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int init_datagram = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr int rtr_path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int rtr_responder = rtr_path | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int rtr_optional = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr int rts_requester =
    IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int live_datagram = IBV_QP_CUR_STATE | IBV_QP_QKEY;
constexpr int live_uc =
    IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
constexpr int live_rc = live_uc | IBV_QP_MIN_RNR_TIMER;
constexpr int drained_uc =
    IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE;
constexpr int drained_rc = drained_uc | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
                           IBV_QP_MIN_RNR_TIMER;
constexpr int drained_xrc_send = drained_uc | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int drained_xrc_recv =
    drained_uc | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

constexpr auto rc = IBV_QPT_RC, uc = IBV_QPT_UC, ud = IBV_QPT_UD, raw = IBV_QPT_RAW_PACKET,
               xs = IBV_QPT_XRC_SEND, xr = IBV_QPT_XRC_RECV;

// qp_state_table of the kernel (drivers/infiniband/core/verbs.c, Linux 6.1).
const transition transitions[] = {
    {IBV_QPS_RESET,
     IBV_QPS_INIT,
     {{rc, init_connected, 0},
      {uc, init_connected, 0},
      {ud, init_datagram, 0},
      {raw, IBV_QP_PORT, 0},
      {xs, init_connected, 0},
      {xr, init_connected, 0}}},
    {IBV_QPS_INIT,
     IBV_QPS_INIT,
     {{rc, 0, init_connected},
      {uc, 0, init_connected},
      {ud, 0, init_datagram},
      {raw, 0, 0},
      {xs, 0, init_connected},
      {xr, 0, init_connected}}},
    {IBV_QPS_INIT,
     IBV_QPS_RTR,
     {{rc, rtr_responder, rtr_optional},
      {uc, rtr_path, rtr_optional},
      {ud, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
      {raw, 0, 0},
      {xs, rtr_path, rtr_optional},
      {xr, rtr_responder, rtr_optional}}},
    {IBV_QPS_RTR,
     IBV_QPS_RTS,
     {{rc, rts_requester, live_rc},
      {uc, IBV_QP_SQ_PSN, live_uc},
      {ud, IBV_QP_SQ_PSN, live_datagram},
      {raw, 0, IBV_QP_RATE_LIMIT},
      {xs, rts_requester, live_uc},
      {xr, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, live_rc}}},
    {IBV_QPS_RTS,
     IBV_QPS_RTS,
     {{rc, 0, live_rc},
      {uc, 0, live_uc},
      {ud, 0, live_datagram},
      {raw, 0, IBV_QP_RATE_LIMIT},
      {xs, 0, live_uc},
      {xr, 0, live_rc}}},
    {IBV_QPS_RTS,
     IBV_QPS_SQD,
     {{rc, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {uc, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {ud, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {raw, 0, 0},
      {xs, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {xr, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY}}},
    {IBV_QPS_SQD,
     IBV_QPS_RTS,
     {{rc, 0, live_rc},
      {uc, 0, live_uc},
      {ud, 0, live_datagram},
      {raw, 0, 0},
      {xs, 0, live_uc},
      {xr, 0, live_rc}}},
    {IBV_QPS_SQD,
     IBV_QPS_SQD,
     {{rc, 0, drained_rc},
      {uc, 0, drained_uc},
      {ud, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
      {raw, 0, 0},
      {xs, 0, drained_xrc_send},
      {xr, 0, drained_xrc_recv}}},
    {IBV_QPS_SQE,
     IBV_QPS_RTS,
     {{rc, 0, 0},
      {uc, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
      {ud, 0, live_datagram},
      {raw, 0, 0},
      {xs, 0, 0},
      {xr, 0, 0}}},
};

[[nodiscard]] bool is_state(ibv_qp_state state) noexcept {
  return state >= IBV_QPS_RESET && state <= IBV_QPS_ERR;
}

}  // namespace

bool modify_is_ok(ibv_qp_state from, ibv_qp_state to, ibv_qp_type type, int mask) noexcept {
  if (!is_state(from) || !is_state(to)) return false;
  if ((mask & IBV_QP_CUR_STATE) != 0 && from != IBV_QPS_RTR && from != IBV_QPS_RTS &&
      from != IBV_QPS_SQD && from != IBV_QPS_SQE)
    return false;
  int required = 0;
  int optional = 0;
  if (to != IBV_QPS_RESET && !(to == IBV_QPS_ERR && from != IBV_QPS_RESET)) {
    const needs* found = nullptr;
    for (const transition& t : transitions)
      if (t.from == from && t.to == to)
        for (const needs& n : t.by_type)
          if (n.type == type) found = &n;
    if (!found) return false;
    required = found->required;
    optional = found->optional;
  }
  return (mask & required) == required && (mask & ~(required | optional | IBV_QP_STATE)) == 0;
}

}  // namespace ibvxx::shim
