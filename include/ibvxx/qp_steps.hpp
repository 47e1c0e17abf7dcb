// The usual transitions of a queue pair, each with the attributes that its type requires.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <ibvxx/gid.hpp>
#include <ibvxx/memory.hpp>
#include <ibvxx/qp_address.hpp>
#include <ibvxx/qp_modify.hpp>
#include <span>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// The attributes that qp_to_init sets. Fields that the type of the queue pair does not take are
/// ignored.
struct qp_init_options {
  int port = 1;            ///< 1..255
  int pkey_index = 0;      ///< 0..65535; most RoCE tables have only 0
  int access = 0;          ///< RC, UC, XRC: what the peer may do, a set of ibv_access_flags
  std::uint32_t qkey = 0;  ///< UD: the Q_Key of senders; the top bit set needs CAP_NET_RAW
};

/// The attributes that qp_to_rtr sets. Fields that the type of the queue pair does not take are
/// ignored.
struct qp_rtr_options {
  ibv_ah_attr path{};               ///< the path to the peer; see rtr_options
  std::uint32_t dest_qpn = 0;       ///< the peer's queue pair, 1..2^24-1
  std::uint32_t rq_psn = 0;         ///< the peer's sq_psn, 0..2^24-1
  ibv_mtu path_mtu = IBV_MTU_1024;  ///< no larger than either port's active MTU
  /// RC, XRC_RECV: the number of the peer's RDMA reads and atomics served at a time, 0..255; the
  /// peer's max_rd_atomic must not be larger. The device's limit is max_qp_rd_atom.
  int max_dest_rd_atomic = 1;
  /// RC, XRC_RECV: how long the peer waits after "no receive posted", as a code, 0..31, that is not
  /// linear: 1 is 0.01 ms, 12 is 0.64 ms, 20 is 10.24 ms, 31 is 491.52 ms, and 0 is 655.36 ms.
  int min_rnr_timer = 12;
};

/// The attributes that qp_to_rts sets. Fields that the type of the queue pair does not take are
/// ignored.
struct qp_rts_options {
  std::uint32_t sq_psn = 0;  ///< the first packet sequence number, 0..2^24-1; the peer's rq_psn
  /// RC, XRC: how long to wait for an acknowledgement, 4.096 us * 2^timeout, 0..31; 14 is 67 ms. 0
  /// waits for ever: a peer that is down is then never detected.
  int timeout = 14;
  /// RC, XRC_SEND: retries after a timeout before IBV_WC_RETRY_EXC_ERR, 0..7.
  int retry_cnt = 7;
  /// RC, XRC_SEND: retries after "no receive posted" before IBV_WC_RNR_RETRY_EXC_ERR, 0..7; 7
  /// retries for ever.
  int rnr_retry = 7;
  /// RC, XRC_SEND: RDMA reads and atomics in progress at a time, 0..255. The device's limit is
  /// max_qp_init_rd_atom.
  int max_rd_atomic = 1;
};

/// The local end of a path.
struct qp_path_options {
  int port = 1;                  ///< 1..255
  int sgid_index = 0;            ///< index of the source GID, 0..255; see choose_gid
  int hop_limit = 64;            ///< routers on the path, 0..255
  int traffic_class = 0;         ///< 0..255; RoCE v2: DSCP in the upper six bits
  int service_level = 0;         ///< 0..15
  std::uint32_t flow_label = 0;  ///< 20 bits
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// A value with its range, and the attribute that it belongs to (0: checked in every case).
struct bounded {
  int attribute;
  const char* field;
  std::int64_t value, low, high;
};

/// Refuses the first value out of its range, among those whose attribute is in `mask`.
[[nodiscard]] inline result<void> check_ranges(const ibv_context* context, int mask,
                                               std::span<const bounded> values) noexcept {
  for (const bounded& b : values)
    if ((b.attribute & ~mask) == 0 && (b.value < b.low || b.value > b.high))
      return failure(error(verb::modify_qp, EINVAL)
                         .on(context)
                         .explain("%s %lld is outside %lld..%lld", b.field,
                                  static_cast<long long>(b.value), static_cast<long long>(b.low),
                                  static_cast<long long>(b.high)));
  return {};
}

/// The mask of a transition: STATE and the attributes that it requires of the type.
[[nodiscard]] inline result<int> step_mask(ref<ibv_qp> qp, ibv_qp_state from,
                                           ibv_qp_state to) noexcept {
  if (!qp.get()) return null_argument(verb::modify_qp, "qp");
  if (const auto transition = find_transition(qp->qp_type, from, to))
    return IBV_QP_STATE | transition->required;
  return failure(error(verb::modify_qp, EOPNOTSUPP)
                     .on(qp->context)
                     .explain("the attributes that a %s queue pair (type %d) needs are not known",
                              qp_type_name(qp->qp_type), static_cast<int>(qp->qp_type)));
}

[[nodiscard]] inline result<void> move_to(ref<ibv_qp> qp, ibv_qp_state state) noexcept {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  return modify_qp(qp, attributes, IBV_QP_STATE);
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// RESET to INIT: receives can be posted. EINVAL naming the field; otherwise the errors of
/// modify_qp.
[[nodiscard]] inline result<void> qp_to_init(ref<ibv_qp> qp,
                                             const qp_init_options& options = {}) noexcept {
  const auto mask = detail::step_mask(qp, IBV_QPS_RESET, IBV_QPS_INIT);
  if (!mask) return failure(mask.error());
  const detail::bounded ranges[] = {
      {IBV_QP_PORT, "qp_init_options.port", options.port, 1, 255},
      {IBV_QP_PKEY_INDEX, "qp_init_options.pkey_index", options.pkey_index, 0, 0xffff},
  };
  if (auto fit = detail::check_ranges(qp->context, *mask, ranges); !fit) return fit;
  const auto access = static_cast<unsigned>(options.access);
  if ((*mask & IBV_QP_ACCESS_FLAGS) != 0 && (access & ~detail::known_access) != 0)
    return failure(error(verb::modify_qp, EINVAL)
                       .on(qp->context)
                       .explain("qp_init_options.access 0x%x has unknown bits 0x%x", access,
                                access & ~detail::known_access));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = static_cast<std::uint8_t>(options.port);
  attributes.pkey_index = static_cast<std::uint16_t>(options.pkey_index);
  attributes.qp_access_flags = access;
  attributes.qkey = options.qkey;
  return modify_qp(qp, attributes, *mask);
}

/// INIT to RTR, "ready to receive": messages from the peer are accepted. Post receives before. UD
/// takes no option. EINVAL naming the field; otherwise the errors of modify_qp.
[[nodiscard]] inline result<void> qp_to_rtr(ref<ibv_qp> qp,
                                            const qp_rtr_options& options = {}) noexcept {
  const auto mask = detail::step_mask(qp, IBV_QPS_INIT, IBV_QPS_RTR);
  if (!mask) return failure(mask.error());
  const detail::bounded ranges[] = {
      {IBV_QP_AV, "qp_rtr_options.path.port_num", options.path.port_num, 1, 255},
      {IBV_QP_DEST_QPN, "qp_rtr_options.dest_qpn", options.dest_qpn, 1, max_24_bit},
      {IBV_QP_RQ_PSN, "qp_rtr_options.rq_psn", options.rq_psn, 0, max_24_bit},
      {IBV_QP_PATH_MTU, "qp_rtr_options.path_mtu", options.path_mtu, IBV_MTU_256, IBV_MTU_4096},
      {IBV_QP_MAX_DEST_RD_ATOMIC, "qp_rtr_options.max_dest_rd_atomic", options.max_dest_rd_atomic,
       0, 255},
      {IBV_QP_MIN_RNR_TIMER, "qp_rtr_options.min_rnr_timer", options.min_rnr_timer, 0, 31},
  };
  if (auto fit = detail::check_ranges(qp->context, *mask, ranges); !fit) return fit;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = options.path;
  attributes.dest_qp_num = options.dest_qpn;
  attributes.rq_psn = options.rq_psn;
  attributes.path_mtu = options.path_mtu;
  attributes.max_dest_rd_atomic = static_cast<std::uint8_t>(options.max_dest_rd_atomic);
  attributes.min_rnr_timer = static_cast<std::uint8_t>(options.min_rnr_timer);
  return modify_qp(qp, attributes, *mask);
}

/// RTR to RTS, "ready to send". EINVAL naming the field; otherwise the errors of modify_qp.
[[nodiscard]] inline result<void> qp_to_rts(ref<ibv_qp> qp,
                                            const qp_rts_options& options = {}) noexcept {
  const auto mask = detail::step_mask(qp, IBV_QPS_RTR, IBV_QPS_RTS);
  if (!mask) return failure(mask.error());
  const detail::bounded ranges[] = {
      {IBV_QP_SQ_PSN, "qp_rts_options.sq_psn", options.sq_psn, 0, max_24_bit},
      {IBV_QP_TIMEOUT, "qp_rts_options.timeout", options.timeout, 0, 31},
      {IBV_QP_RETRY_CNT, "qp_rts_options.retry_cnt", options.retry_cnt, 0, 7},
      {IBV_QP_RNR_RETRY, "qp_rts_options.rnr_retry", options.rnr_retry, 0, 7},
      {IBV_QP_MAX_QP_RD_ATOMIC, "qp_rts_options.max_rd_atomic", options.max_rd_atomic, 0, 255},
  };
  if (auto fit = detail::check_ranges(qp->context, *mask, ranges); !fit) return fit;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = options.sq_psn;
  attributes.timeout = static_cast<std::uint8_t>(options.timeout);
  attributes.retry_cnt = static_cast<std::uint8_t>(options.retry_cnt);
  attributes.rnr_retry = static_cast<std::uint8_t>(options.rnr_retry);
  attributes.max_rd_atomic = static_cast<std::uint8_t>(options.max_rd_atomic);
  return modify_qp(qp, attributes, *mask);
}

/// Any state but RESET to ERR: outstanding work requests complete with IBV_WC_WR_FLUSH_ERR.
[[nodiscard]] inline result<void> qp_to_error(ref<ibv_qp> qp) noexcept {
  return detail::move_to(qp, IBV_QPS_ERR);
}

/// Any state to RESET: outstanding work requests are dropped without a completion. In SQD, while
/// the send queue drains, some drivers (Soft-RoCE) refuse this and allow ERR only.
[[nodiscard]] inline result<void> qp_to_reset(ref<ibv_qp> qp) noexcept {
  return detail::move_to(qp, IBV_QPS_RESET);
}

/// The options of qp_to_rtr for a connection to `remote`: the path, its queue pair and PSN, and the
/// smaller of the two MTUs. The path uses global routing if the peer has a GID. EINVAL naming the
/// field that is out of range, or if the peer has neither a GID nor a LID.
[[nodiscard]] inline result<qp_rtr_options> rtr_options(const qp_address& local,
                                                        const qp_address& remote,
                                                        const qp_path_options& path = {}) noexcept {
  if (auto valid = detail::check_address(local); !valid) return failure(valid.error());
  if (auto valid = detail::check_address(remote); !valid) return failure(valid.error());
  const detail::bounded ranges[] = {
      {0, "qp_path_options.port", path.port, 1, 255},
      {0, "qp_path_options.sgid_index", path.sgid_index, 0, 255},
      {0, "qp_path_options.hop_limit", path.hop_limit, 0, 255},
      {0, "qp_path_options.traffic_class", path.traffic_class, 0, 255},
      {0, "qp_path_options.service_level", path.service_level, 0, 15},
      {0, "qp_path_options.flow_label", path.flow_label, 0, 0xfffff},
  };
  if (auto fit = detail::check_ranges(nullptr, 0, ranges); !fit) return failure(fit.error());
  const bool global = family(remote.gid) != gid_family::none;
  if (!global && remote.lid == 0)
    return failure(error(verb::modify_qp, EINVAL).explain("the peer has neither a GID nor a LID"));

  qp_rtr_options options;
  options.dest_qpn = remote.qpn;
  options.rq_psn = remote.psn;
  options.path_mtu = std::min(local.mtu, remote.mtu);
  options.path.port_num = static_cast<std::uint8_t>(path.port);
  options.path.sl = static_cast<std::uint8_t>(path.service_level);
  options.path.dlid = remote.lid;
  if (global) {
    options.path.is_global = 1;
    options.path.grh.dgid = remote.gid;
    options.path.grh.sgid_index = static_cast<std::uint8_t>(path.sgid_index);
    options.path.grh.hop_limit = static_cast<std::uint8_t>(path.hop_limit);
    options.path.grh.traffic_class = static_cast<std::uint8_t>(path.traffic_class);
    options.path.grh.flow_label = path.flow_label;
  }
  return options;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
