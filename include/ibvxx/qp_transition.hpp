// Queue pair states: the attributes of each transition, as data, and a check that names what is
// wrong. The kernel itself only returns EINVAL.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <ibvxx/result.hpp>
#include <ibvxx/text.hpp>
#include <iterator>
#include <optional>

namespace ibvxx {

/// "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "UNKNOWN"; "?" for any other value.
[[nodiscard]] constexpr const char* qp_state_name(ibv_qp_state state) noexcept {
  constexpr const char* names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "UNKNOWN"};
  const auto i = static_cast<unsigned>(state);
  return i < std::size(names) ? names[i] : "?";
}

/// "RC", "UC", "UD", "RAW_PACKET", "XRC_SEND", "XRC_RECV", "DRIVER"; "?" otherwise.
[[nodiscard]] constexpr const char* qp_type_name(ibv_qp_type type) noexcept {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    case IBV_QPT_DRIVER:
      return "DRIVER";
  }
  return "?";
}

/// The name of one IBV_QP_* bit without that prefix, for example "PATH_MTU"; nullptr for a bit
/// without a name in verbs.h.
[[nodiscard]] constexpr const char* qp_attribute_name(unsigned bit) noexcept {
  constexpr const char* names[] = {"STATE",
                                   "CUR_STATE",
                                   "EN_SQD_ASYNC_NOTIFY",
                                   "ACCESS_FLAGS",
                                   "PKEY_INDEX",
                                   "PORT",
                                   "QKEY",
                                   "AV",
                                   "PATH_MTU",
                                   "TIMEOUT",
                                   "RETRY_CNT",
                                   "RNR_RETRY",
                                   "RQ_PSN",
                                   "MAX_QP_RD_ATOMIC",
                                   "ALT_PATH",
                                   "MIN_RNR_TIMER",
                                   "SQ_PSN",
                                   "MAX_DEST_RD_ATOMIC",
                                   "PATH_MIG_STATE",
                                   "CAP",
                                   "DEST_QPN"};
  static_assert(IBV_QP_DEST_QPN == 1 << (std::size(names) - 1));
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (bit == 1U << i) return names[i];
  return bit == IBV_QP_RATE_LIMIT ? "RATE_LIMIT" : nullptr;
}

/// The names in an attribute mask, lowest bit first: "STATE, PORT". Bits without a name are
/// combined into one hexadecimal number; an empty mask is "none".
[[nodiscard]] inline fixed_text<320> qp_attribute_names(int mask) noexcept {
  fixed_text<320> text;
  unsigned nameless = 0;
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned bit = static_cast<unsigned>(mask) & (1U << i);
    if (bit == 0) continue;
    if (const char* known = qp_attribute_name(bit))
      text.append(text.empty() ? "" : ", ").append(known);
    else
      nameless |= bit;
  }
  if (nameless != 0) text.print("%s0x%x", text.empty() ? "" : ", ", nameless);
  return text.empty() ? text.append("none") : text;
}

/// The attributes of a transition: sets of IBV_QP_* bits without IBV_QP_STATE, which is always
/// allowed.
struct qp_transition {
  int required = 0;  ///< every one must be in the mask
  int optional = 0;  ///< may be in the mask; all others are forbidden
};

namespace detail::qp_table {

enum type_bits : unsigned { rc = 1, uc = 2, ud = 4, raw = 8, xrc_send = 16, xrc_recv = 32 };

[[nodiscard]] constexpr unsigned type_bit(ibv_qp_type type) noexcept {
  switch (type) {
    case IBV_QPT_RC:
      return rc;
    case IBV_QPT_UC:
      return uc;
    case IBV_QPT_UD:
      return ud;
    case IBV_QPT_RAW_PACKET:
      return raw;
    case IBV_QPT_XRC_SEND:
      return xrc_send;
    case IBV_QPT_XRC_RECV:
      return xrc_recv;
    default:
      return 0;
  }
}

/// Attributes of one transition, for some types. The rows of one transition are combined.
struct row {
  ibv_qp_state from, to;
  unsigned types;
  int required, optional;
};

// What ib_modify_qp_is_ok accepts (drivers/infiniband/core/verbs.c, Linux 5 and 6). "Any to RESET"
// and "any but RESET to ERR" take no attributes and are not repeated here. One row differs: that
// table lets UC change its AV in SQD, but ib_uverbs first adds PORT to such a mask, which UC does
// not allow there, so that the call always fails (measured, Linux 6.1).
inline constexpr unsigned connected = rc | uc | xrc_send | xrc_recv;
inline constexpr unsigned any_type = connected | ud | raw;
inline constexpr int identity_c = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
inline constexpr int identity_ud = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
inline constexpr int remote = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
inline constexpr int retries =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
inline constexpr int running =
    IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
inline constexpr int drained =
    IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE;
inline constexpr row rows[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, connected, identity_c, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, ud, identity_ud, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, raw, IBV_QP_PORT, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, connected, 0, identity_c},
    {IBV_QPS_INIT, IBV_QPS_INIT, ud, 0, identity_ud},
    {IBV_QPS_INIT, IBV_QPS_INIT, raw, 0, 0},
    {IBV_QPS_INIT, IBV_QPS_RTR, connected, remote,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, rc | xrc_recv, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, 0},
    {IBV_QPS_INIT, IBV_QPS_RTR, ud, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, raw, 0, 0},
    {IBV_QPS_RTR, IBV_QPS_RTS, connected, IBV_QP_SQ_PSN, running},
    {IBV_QPS_RTR, IBV_QPS_RTS, rc | xrc_send, retries, 0},
    {IBV_QPS_RTR, IBV_QPS_RTS, xrc_recv, IBV_QP_TIMEOUT, 0},
    {IBV_QPS_RTR, IBV_QPS_RTS, rc | xrc_recv, 0, IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS, ud, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, raw, 0, IBV_QP_RATE_LIMIT},
    {IBV_QPS_RTS, IBV_QPS_RTS, connected, 0, running},
    {IBV_QPS_RTS, IBV_QPS_RTS, rc | xrc_recv, 0, IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, ud, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, raw, 0, IBV_QP_RATE_LIMIT},
    {IBV_QPS_RTS, IBV_QPS_SQD, connected | ud, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_SQD, raw, 0, 0},
    {IBV_QPS_SQD, IBV_QPS_RTS, connected, 0, running},
    {IBV_QPS_SQD, IBV_QPS_RTS, rc | xrc_recv, 0, IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_RTS, ud, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_SQD, IBV_QPS_RTS, raw, 0, 0},
    {IBV_QPS_SQD, IBV_QPS_SQD, connected, 0, drained},
    {IBV_QPS_SQD, IBV_QPS_SQD, rc | xrc_send | xrc_recv, 0,
     IBV_QP_AV | IBV_QP_PORT | IBV_QP_TIMEOUT},
    {IBV_QPS_SQD, IBV_QPS_SQD, rc | xrc_send, 0, retries},
    {IBV_QPS_SQD, IBV_QPS_SQD, rc | xrc_recv, 0, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_SQD, ud, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_SQD, IBV_QPS_SQD, raw, 0, 0},
    {IBV_QPS_SQE, IBV_QPS_RTS, any_type, 0, 0},
    {IBV_QPS_SQE, IBV_QPS_RTS, ud, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, uc, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
};

}  // namespace detail::qp_table

/// True for the types whose transitions are known here: RC, UC, UD, RAW_PACKET, XRC_SEND, XRC_RECV.
[[nodiscard]] constexpr bool has_transitions(ibv_qp_type type) noexcept {
  return detail::qp_table::type_bit(type) != 0;
}

/// The attributes of the transition, or nothing if it does not exist or the type is not known here.
/// `from` equal to `to` changes attributes without changing the state.
[[nodiscard]] constexpr std::optional<qp_transition> find_transition(ibv_qp_type type,
                                                                     ibv_qp_state from,
                                                                     ibv_qp_state to) noexcept {
  const unsigned bit = detail::qp_table::type_bit(type);
  const auto is_state = [](ibv_qp_state s) { return s >= IBV_QPS_RESET && s <= IBV_QPS_ERR; };
  if (bit == 0 || !is_state(from) || !is_state(to)) return std::nullopt;
  if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET)) return qp_transition{};
  qp_transition found;
  bool exists = false;
  for (const auto& r : detail::qp_table::rows) {
    if (r.from != from || r.to != to || (r.types & bit) == 0) continue;
    exists = true;
    found.required |= r.required;
    found.optional |= r.optional;
  }
  return exists ? std::optional(found) : std::nullopt;
}

/// Attributes that the kernel removes from the mask of an XRC queue pair before it checks it: those
/// of the half that such a queue pair does not have. They are allowed and have no effect.
[[nodiscard]] constexpr int ignored_attributes(ibv_qp_type type) noexcept {
  if (type == IBV_QPT_XRC_SEND) return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (type == IBV_QPT_XRC_RECV)
    return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  return 0;
}

/// Attributes that are not checked here, since the result depends on the kernel and the driver:
/// RATE_LIMIT (once for RAW_PACKET only; newer kernels and bnxt_re accept it for RC), and every bit
/// without a name. A kernel that does not know them returns EINVAL or EOPNOTSUPP. CAP is not among
/// them: verbs.h has it, and no kernel's table ever had it.
[[nodiscard]] constexpr int undecided_attributes(ibv_qp_type type) noexcept {
  unsigned decided = 2U * IBV_QP_DEST_QPN - 1;
  if (type == IBV_QPT_RAW_PACKET) decided |= IBV_QP_RATE_LIMIT;
  return static_cast<int>(~decided);
}

namespace detail {

/// The attributes that a mask lacks, and those that it must not have.
struct transition_verdict {
  bool exists = true;
  int missing = 0, forbidden = 0;
  [[nodiscard]] constexpr bool good() const noexcept {
    return exists && missing == 0 && forbidden == 0;
  }
};

[[nodiscard]] constexpr transition_verdict judge_transition(ibv_qp_type type, ibv_qp_state from,
                                                            ibv_qp_state to, int mask) noexcept {
  if (!has_transitions(type)) return {};
  const auto transition = find_transition(type, from, to);
  if (!transition) return {false, 0, 0};
  const int known = transition->required | transition->optional | IBV_QP_STATE |
                    ignored_attributes(type) | undecided_attributes(type);
  return {true, transition->required & ~mask, mask & ~known};
}

inline void explain_verdict(error& e, const transition_verdict& verdict, ibv_qp_type type,
                            ibv_qp_state from, ibv_qp_state to) noexcept {
  e.explain("%s %s->%s", qp_type_name(type), qp_state_name(from), qp_state_name(to));
  if (!verdict.exists) e.explain(": there is no such transition");
  if (verdict.missing != 0) e.explain(": missing %s", qp_attribute_names(verdict.missing).c_str());
  if (verdict.forbidden != 0)
    e.explain("%snot allowed: %s", verdict.missing != 0 ? "; " : ": ",
              qp_attribute_names(verdict.forbidden).c_str());
}

}  // namespace detail

inline namespace IBVXX_RESULT_KIND {

/// Checks that a queue pair of `type` may change from `from` to `to` with exactly the attributes in
/// `mask` (with or without IBV_QP_STATE). The error, EINVAL, names the attributes that are missing
/// and those that are not allowed: "RC INIT->RTR: missing PATH_MTU, RQ_PSN; not allowed: QKEY".
///
/// Success means that the kernel's table allows the mask, not that the values are valid. Types
/// without a table (see has_transitions) and undecided_attributes are not checked.
/// IBV_QP_CUR_STATE, with which the kernel does not check the present state, is allowed in RTR,
/// RTS, SQD and SQE only, and there only for a transition to RTS.
[[nodiscard]] inline result<void> check_modify(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to,
                                               int mask) noexcept {
  const detail::transition_verdict verdict = detail::judge_transition(type, from, to, mask);
  if (verdict.good()) [[likely]]
    return {};
  error e(verb::modify_qp, EINVAL);
  detail::explain_verdict(e, verdict, type, from, to);
  return failure(e);
}

}  // namespace IBVXX_RESULT_KIND

}  // namespace ibvxx
