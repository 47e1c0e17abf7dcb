// Modifying a queue pair, with the transition checked first, so that a refusal names the attributes
// that are wrong.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/handle.hpp>
#include <ibvxx/qp_address.hpp>
#include <ibvxx/qp_transition.hpp>

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// False for iWARP, EFA and usNIC, whose drivers have their own rules and do not use the kernel's
/// table.
[[nodiscard]] inline bool follows_table(const ibv_qp* qp) noexcept {
  const ibv_device* device = qp->context ? qp->context->device : nullptr;
  return has_transitions(qp->qp_type) && device && device->transport_type == IBV_TRANSPORT_IB;
}

struct real_state {
  ibv_qp_state state = IBV_QPS_UNKNOWN;
  bool draining = false;  ///< in SQD: the send queue is not empty yet
};

/// Queries the state in the kernel, which updates the one in libibverbs; UNKNOWN if the query
/// fails.
[[nodiscard, gnu::cold]] inline real_state ask_state(ibv_qp* qp) noexcept {
  const detail::errno_guard keep;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  if (::ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial) != 0) return {};
  return {attributes.qp_state, attributes.qp_state == IBV_QPS_SQD && attributes.sq_draining != 0};
}

/// For EINVAL of a transition that the table allows: names at most one value that is above a limit
/// of the device or the port, or that does not fit another value.
[[gnu::cold]] inline void explain_qp_values(error& e, ibv_qp* qp, const ibv_qp_attr& attributes,
                                            int mask) noexcept {
  const detail::errno_guard keep;
  ibv_device_attr device;
  if (::ibv_query_device(qp->context, &device) != 0) return;
  const auto above = [&](int attribute, const char* field, int value, int limit) {
    if ((mask & attribute) == 0 || value <= limit) return false;
    e.explain("; %s %d is above the device's limit of %d", field, value, limit);
    return true;
  };
  if (above(IBV_QP_PORT, "port_num", attributes.port_num, device.phys_port_cnt) ||
      above(IBV_QP_AV, "ah_attr.port_num", attributes.ah_attr.port_num, device.phys_port_cnt) ||
      above(IBV_QP_PKEY_INDEX, "pkey_index", attributes.pkey_index, device.max_pkeys - 1) ||
      above(IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", attributes.max_dest_rd_atomic,
            device.max_qp_rd_atom) ||
      above(IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attributes.max_rd_atomic,
            device.max_qp_init_rd_atom) ||
      (mask & IBV_QP_AV) == 0)
    return;

  const ibv_ah_attr& path = attributes.ah_attr;
  if (path.port_num == 0) {
    e.explain("; ah_attr.port_num is 0: ports count from 1");
    return;
  }
  // The path's port must be the port of the queue pair: the one set by this call, or else the one
  // set in INIT.
  ibv_qp_attr present{};
  ibv_qp_init_attr initial{};
  if ((mask & IBV_QP_PORT) != 0)
    present.port_num = attributes.port_num;
  else if (::ibv_query_qp(qp, &present, IBV_QP_PORT, &initial) != 0)
    present.port_num = path.port_num;
  ibv_port_attr port;
  if (path.port_num != present.port_num) {
    e.explain("; ah_attr.port_num %d is not the queue pair's port %d", path.port_num,
              present.port_num);
  } else if (ibv_query_port(qp->context, path.port_num, &port) != 0) {
    return;
  } else if ((mask & IBV_QP_PATH_MTU) != 0 && attributes.path_mtu > port.active_mtu) {
    e.explain("; path_mtu %d is above port %d's active MTU of %d", mtu_bytes(attributes.path_mtu),
              path.port_num, mtu_bytes(port.active_mtu));
  } else if (path.is_global != 0 && path.grh.sgid_index >= port.gid_tbl_len) {
    e.explain("; sgid_index %d is outside port %d's GID table: 0..%d", path.grh.sgid_index,
              path.port_num, port.gid_tbl_len - 1);
  } else if (path.is_global == 0 && port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    e.explain("; port %d is RoCE: ah_attr.is_global and a destination GID are needed",
              path.port_num);
  } else if (path.is_global != 0) {
    e.explain("; sgid_index %d, port %d", path.grh.sgid_index, path.port_num);
  }
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Calls ibv_modify_qp after checking the transition against the kernel's table: what the kernel
/// would refuse with a bare EINVAL is refused before the call, and the error names the attributes
/// (see check_modify). Other errors are those of the verb: EINVAL, naming the value above a limit
/// if it can be found, ENOMEM, EPERM.
///
/// The transition starts from `qp->state`, which libibverbs updates in its own calls; with
/// IBV_QP_CUR_STATE in the mask it starts from `attributes.cur_qp_state`, which most drivers do not
/// check either. `qp->state` can be out of date: a queue pair enters ERR or SQE by itself after an
/// error completion, and one from ibv_open_qp starts UNKNOWN. So a refusal needs the state in the
/// kernel: before a refusal, and after a failure, the queue pair is queried (which updates
/// `qp->state`), and the message has the state if it differs. A success needs no query. UC and UD
/// queue pairs leave SQE with `cur_qp_state = IBV_QPS_SQE`, or, since the kernel knows the state,
/// without CUR_STATE.
///
/// Not checked: types without a table, and devices whose drivers have their own rules (iWARP, EFA,
/// usNIC); those calls are passed to the kernel as they are. Not synchronised with other users of
/// `qp`.
[[nodiscard]] inline result<void> modify_qp(ref<ibv_qp> qp, ibv_qp_attr attributes,
                                            int mask) noexcept {
  if (!qp.get()) return detail::null_argument(verb::modify_qp, "qp");
  const ibv_qp_type type = qp->qp_type;
  const bool told = (mask & IBV_QP_CUR_STATE) != 0;
  const ibv_qp_state believed = told ? attributes.cur_qp_state : qp->state;
  const auto target = [&](ibv_qp_state from) {
    return (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : from;
  };
  const auto judge = [&](ibv_qp_state from) {
    return detail::judge_transition(type, from, target(from), mask);
  };
  const auto explain_stale = [believed](error& e, ibv_qp_state real) {
    if (real != IBV_QPS_UNKNOWN && real != believed)
      e.explain("; the queue pair was in %s, not %s", qp_state_name(real), qp_state_name(believed));
  };
  error e(verb::modify_qp, EINVAL);
  e.on(qp->context);

  if (detail::follows_table(qp.get()) && !judge(believed).good()) [[unlikely]] {
    const ibv_qp_state real = told ? IBV_QPS_UNKNOWN : detail::ask_state(qp.get()).state;
    const ibv_qp_state from = real == IBV_QPS_UNKNOWN ? believed : real;
    if (const auto verdict = judge(from); !verdict.good()) {
      detail::explain_verdict(e, verdict, type, from, target(from));
      explain_stale(e, real);
      return failure(e);
    }
  }

  const int code = ::ibv_modify_qp(qp.get(), &attributes, mask);
  if (code == 0) [[likely]]
    return {};
  e = error(verb::modify_qp, code).on(qp->context);
  e.explain("%s %s->%s", qp_type_name(type), qp_state_name(believed),
            qp_state_name(target(believed)));
  const detail::real_state real = detail::ask_state(qp.get());
  explain_stale(e, real.state);
  if (real.draining) e.explain("; the send queue is still draining");
  if (const int open = mask & undecided_attributes(type); open != 0)
    e.explain("; %s may be unknown to this kernel", qp_attribute_names(open).c_str());
  if (e.code() == EINVAL) detail::explain_qp_values(e, qp.get(), attributes, mask);
  if (e.code() == ENOMEM) detail::explain_no_memory(e, qp->context);
  if (e.code() == EPERM && (mask & IBV_QP_QKEY) != 0 && (attributes.qkey >> 31) != 0)
    e.explain("; qkey 0x%x has the top bit set, which needs CAP_NET_RAW", attributes.qkey);
  return failure(e);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
