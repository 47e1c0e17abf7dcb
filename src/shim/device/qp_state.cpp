#include "device/qp_state.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "device/address.hpp"
#include "device/data_path/completion.hpp"
#include "device/data_path/send_queue.hpp"
#include "device/qp_rules.hpp"

namespace ibvxx::shim {
namespace {

/// The attributes that the kernel takes out of an XRC queue pair's mask (modify_qp_mask in
/// uverbs_cmd.c): those of the half, sender or receiver, that it lacks.
[[nodiscard]] int seen_by_kernel(ibv_qp_type type, int mask) noexcept {
  if (type == IBV_QPT_XRC_SEND) return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (type == IBV_QPT_XRC_RECV)
    return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
  return mask;
}

/// modify_qp of uverbs_cmd.c and rxe_qp_chk_attr, in their order (measured): 0 or the errno.
[[nodiscard]] int check_change(const sim_qp& qp, const ibv_qp_attr& a, int mask) noexcept {
  const sim_context& context = *qp.context;
  const auto has = [mask](int bit) noexcept { return (mask & bit) != 0; };
  const sim_device& device = *context.device;
  if (has(IBV_QP_PORT) && !find_port(device, a.port_num)) return EINVAL;
  if (has(IBV_QP_AV)) {
    if (!find_port(device, a.ah_attr.port_num)) return EINVAL;
    // On the way to RTR the address must be one of the port that the queue pair is bound to.
    if (has(IBV_QP_STATE) && a.qp_state == IBV_QPS_RTR && a.ah_attr.port_num != qp.attr.port_num)
      return EINVAL;
  }
  if (has(IBV_QP_ALT_PATH) &&
      (!find_port(device, a.alt_port_num) || !find_port(device, a.alt_ah_attr.port_num)))
    return EINVAL;
  const auto is_state = [](ibv_qp_state s) noexcept {
    return s >= IBV_QPS_RESET && s <= IBV_QPS_ERR;
  };
  if ((has(IBV_QP_CUR_STATE) && !is_state(a.cur_qp_state)) ||
      (has(IBV_QP_STATE) && !is_state(a.qp_state)))
    return EINVAL;
  if (has(IBV_QP_AV))
    if (const int code = check_address(context, a.ah_attr)) return code;
  if (has(IBV_QP_ALT_PATH)) {
    if (const int code = check_address(context, a.alt_ah_attr)) return code;
    // The kernel refuses alternate paths on RoCE (_ib_modify_qp; measured).
    const port_description* own = find_port(device, qp.attr.port_num);
    if (own && own->link_layer == IBV_LINK_LAYER_ETHERNET) return EINVAL;
  }
  const ibv_qp_state from = has(IBV_QP_CUR_STATE) ? a.cur_qp_state : qp.state();
  const ibv_qp_state to = has(IBV_QP_STATE) ? a.qp_state : from;
  // A new address in SQD brings its port along (modify_qp of uverbs_cmd.c), which UC refuses in SQD
  // (measured).
  if (has(IBV_QP_AV) && from == IBV_QPS_SQD) mask |= IBV_QP_PORT;
  if (!modify_is_ok(from, to, qp.verbs.qp_type, mask)) return EINVAL;
  const device_behaviour& behaviour = context.behaviour();
  if (has(IBV_QP_PATH_MTU)) {
    const port_description* port = find_port(device, qp.attr.port_num);
    if (a.path_mtu > port->max_mtu ||
        (behaviour.checks_path_mtu_minimum && a.path_mtu < IBV_MTU_256))
      return EINVAL;
  }
  if (has(IBV_QP_MAX_QP_RD_ATOMIC) && a.max_rd_atomic > context.limits().max_qp_init_rd_atom)
    return EINVAL;
  if (has(IBV_QP_MAX_DEST_RD_ATOMIC) && behaviour.checks_max_dest_rd_atomic &&
      a.max_dest_rd_atomic > context.limits().max_qp_rd_atom)
    return EINVAL;
  if (has(IBV_QP_TIMEOUT) && a.timeout > 31) return EINVAL;
  if (has(IBV_QP_PKEY_INDEX) && behaviour.checks_pkey_index && a.pkey_index >= 1) return EINVAL;
  return 0;
}

/// rxe_qp_from_attr (measured): the numbers of reads and atomics are rounded up to powers of two.
void apply_attributes(sim_qp& qp, const ibv_qp_attr& a, int mask) noexcept {
  ibv_qp_attr& now = qp.attr;
  const auto has = [mask](int bit) noexcept { return (mask & bit) != 0; };
  const auto rounded = [](std::uint8_t n) noexcept {
    return n == 0 ? n : static_cast<std::uint8_t>(std::min(128U, std::bit_ceil(unsigned{n})));
  };
  constexpr std::uint32_t psn = 0xffffff;
  if (has(IBV_QP_ACCESS_FLAGS)) now.qp_access_flags = a.qp_access_flags;
  if (has(IBV_QP_PKEY_INDEX)) now.pkey_index = a.pkey_index;
  if (has(IBV_QP_PORT)) now.port_num = a.port_num;
  if (has(IBV_QP_QKEY)) now.qkey = a.qkey;
  if (has(IBV_QP_AV)) now.ah_attr = a.ah_attr;
  if (has(IBV_QP_PATH_MTU)) now.path_mtu = a.path_mtu;
  if (has(IBV_QP_TIMEOUT)) now.timeout = a.timeout;
  if (has(IBV_QP_RETRY_CNT)) now.retry_cnt = a.retry_cnt;
  if (has(IBV_QP_RNR_RETRY)) now.rnr_retry = a.rnr_retry;
  if (has(IBV_QP_RQ_PSN)) now.rq_psn = a.rq_psn & psn;
  if (has(IBV_QP_SQ_PSN)) now.sq_psn = a.sq_psn & psn;
  if (has(IBV_QP_MAX_QP_RD_ATOMIC)) now.max_rd_atomic = rounded(a.max_rd_atomic);
  if (has(IBV_QP_MAX_DEST_RD_ATOMIC)) now.max_dest_rd_atomic = rounded(a.max_dest_rd_atomic);
  if (has(IBV_QP_MIN_RNR_TIMER)) now.min_rnr_timer = a.min_rnr_timer;
  if (has(IBV_QP_PATH_MIG_STATE)) now.path_mig_state = a.path_mig_state;
  if (has(IBV_QP_DEST_QPN)) now.dest_qp_num = a.dest_qp_num;
  if (has(IBV_QP_EN_SQD_ASYNC_NOTIFY)) now.en_sqd_async_notify = a.en_sqd_async_notify;
  if (has(IBV_QP_RATE_LIMIT)) now.rate_limit = a.rate_limit;
  if (has(IBV_QP_ALT_PATH)) {
    now.alt_ah_attr = a.alt_ah_attr;
    now.alt_port_num = a.alt_port_num;
    now.alt_pkey_index = a.alt_pkey_index;
    now.alt_timeout = a.alt_timeout;
  }
  if (has(IBV_QP_CUR_STATE)) now.cur_qp_state = a.qp_state;  // as rxe does (measured)
}

/// Enters a state, and flushes, discards or continues the queued requests as that state requires.
void enter(session_state& state, sim_qp& qp, ibv_qp_state to) {
  const ibv_qp_state from = qp.state();
  if (to == IBV_QPS_ERR) {
    enter_error(state, qp);
    // Receives that were posted in ERR (measured).
    if (from == IBV_QPS_ERR) flush_receives(state, qp);
  } else {
    qp.attr.qp_state = to;
    if (to == IBV_QPS_RESET) clear_work(state, qp);
  }
  if (from == IBV_QPS_RTS && to == IBV_QPS_SQD) {
    const bool drains = qp.waiting && qp.context->behaviour().sqd_waits_for_begun_request;
    if (!drains) stop_waiting(state, qp);
    qp.attr.sq_draining = drains ? 1 : 0;
    if (!drains) raise_drained(qp);
  }
  if (to == IBV_QPS_RTS && qp.context->behaviour().rts_begins_queued_requests)
    run_send_queue(state, qp);
  wake(state, qp);
  wake_senders_to(state, qp.verbs.qp_num);
  continue_waiting(state);
}

}  // namespace

namespace device {

int modify_qp_rate_limit(call& c, ibv_qp* qp, ibv_qp_rate_limit_attr* attributes) {
  auto* found = c.use<sim_qp>(qp);
  if (!found || c.failing() || !c.given(attributes, "attr")) return c.refuse_code();
  if (!found->context->offers().rate_limits) return EOPNOTSUPP;
  // mlx5: RAW_PACKET in RTS only, and no mask bit is defined.
  if (attributes->comp_mask != 0 || qp->qp_type != IBV_QPT_RAW_PACKET ||
      found->state() != IBV_QPS_RTS)
    return EINVAL;
  found->attr.rate_limit = attributes->rate_limit;
  return 0;
}

int modify_qp(call& c, ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  auto* handle = c.use<sim_qp>(qp);
  if (!handle || c.failing() || !c.given(attributes, "attr")) return c.refuse_code();
  sim_qp& changed = *handle->original;
  // libibverbs and rxe accept no other bits (measured); hardware also a RAW_PACKET rate.
  int known = 2 * IBV_QP_DEST_QPN - 1;
  if (changed.context->offers().rate_limits) known |= IBV_QP_RATE_LIMIT;
  if ((mask & ~known) != 0) return EOPNOTSUPP;
  mask = seen_by_kernel(qp->qp_type, mask);
  if (const int code = check_change(changed, *attributes, mask)) return call::from_kernel(code);
  apply_attributes(changed, *attributes, mask);
  if ((mask & IBV_QP_STATE) != 0) {
    qp->state = attributes->qp_state;
    enter(c.state(), changed, attributes->qp_state);
  }
  return c.concluded();
}

// Every field is filled in, whatever the mask (measured), except two that Soft-RoCE does not
// report, which stay unchanged.
int query_qp(call& c, ibv_qp* qp, ibv_qp_attr* out, int mask, ibv_qp_init_attr* init) {
  auto* handle = c.use<sim_qp>(qp);
  if (!handle || c.failing() || !c.given(out, "attr") || !c.given(init, "init_attr"))
    return c.refuse_code();
  if ((mask & ~(2 * IBV_QP_DEST_QPN - 1)) != 0) return EOPNOTSUPP;  // libibverbs (measured)
  const sim_qp& queried = *handle->original;
  ibv_qp_attr answer = queried.attr;
  if (queried.context->behaviour().query_qp_is_complete) {
    answer.cur_qp_state = answer.qp_state;
  } else {
    answer.en_sqd_async_notify = out->en_sqd_async_notify;
    answer.rate_limit = out->rate_limit;
    answer.ah_attr.is_global = 1;
  }
  answer.cap = queried.cap;
  *out = answer;
  *init = {};
  init->qp_context = qp->qp_context;
  init->send_cq = qp->send_cq;
  init->recv_cq = qp->recv_cq;
  init->srq = qp->srq;
  init->cap = queried.cap;
  init->qp_type = qp->qp_type;
  init->sq_sig_all = queried.signal_all ? 1 : 0;
  if ((mask & IBV_QP_STATE) != 0) qp->state = out->qp_state;
  return 0;
}

int query_ece(call& c, ibv_qp* qp, ibv_ece* ece) {
  auto* found = c.use<sim_qp>(qp);
  if (!found || c.failing() || !c.given(ece, "ece")) return c.refuse_code();
  if (!found->context->offers().connection_options) return EOPNOTSUPP;
  *ece = found->ece;
  return 0;
}

int set_ece(call& c, ibv_qp* qp, ibv_ece* ece) {
  auto* found = c.use<sim_qp>(qp);
  if (!found || c.failing() || !c.given(ece, "ece")) return c.refuse_code();
  if (ece->vendor_id == 0) return call::from_kernel(EOPNOTSUPP);  // libibverbs sets it (measured)
  if (!found->context->offers().connection_options) return EOPNOTSUPP;
  if (ece->comp_mask != 0) return EINVAL;
  found->ece = *ece;
  return 0;
}

int query_qp_data_in_order(call& c, ibv_qp* qp, ibv_wr_opcode, std::uint32_t) {
  static_cast<void>(c.use<sim_qp>(qp));
  return 0;  // as with providers that do not implement it
}

}  // namespace device
}  // namespace ibvxx::shim
