// Queue pairs: creating, modifying and querying them. Posting: posting.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/checks.hpp>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/handle.hpp>
#include <ibvxx/posting.hpp>
#include <ibvxx/qp_transition.hpp>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct qp_deleter : object_deleter<qp_deleter, ibv_qp, verb::destroy_qp> {
  static constexpr const char* users = "a multicast attachment or a flow";
  [[nodiscard]] static int destroy(ibv_qp* qp) noexcept { return ::ibv_destroy_qp(qp); }
};
/// A queue pair, from any of the calls that create one. Work requests in progress do not keep it:
/// destroying it drops them. Destroying it waits, without a limit, until every async event read for
/// it has been acknowledged. Destroy it before its CQs, its SRQ and its protection domain.
using unique_qp = unique_handle<ibv_qp*, qp_deleter>;

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Refuses a queue without a completion queue. On older kernels libibverbs passes handle 0 for a
/// null one (rdma-core 44, cmd_qp.c), which may be the handle of another completion queue. XRC and
/// driver QPs may have none.
template <class Attributes>
[[nodiscard]] result<void> check_qp_queues(verb call, const ibv_context* context,
                                           const Attributes& attributes) noexcept {
  switch (attributes.qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_RAW_PACKET:
      break;
    default:
      return {};
  }
  if (!attributes.send_cq && attributes.cap.max_send_wr != 0)
    return failure(refusal(call, context)
                       .explain("attributes.send_cq is null, but cap.max_send_wr is %u",
                                attributes.cap.max_send_wr));
  if (!attributes.recv_cq && (attributes.srq || attributes.cap.max_recv_wr != 0))
    return failure(refusal(call, context)
                       .explain("attributes.recv_cq is null, but %s",
                                attributes.srq ? "there is an SRQ" : "cap.max_recv_wr is not 0"));
  return {};
}

/// Explains a failed creation by the size above the device's limit, or else by all sizes.
[[gnu::cold]] inline void explain_qp_sizes(error& e, ibv_context* context, const ibv_qp_cap& asked,
                                           ibv_qp_type type) noexcept {
  const detail::errno_guard keep;
  ibv_device_attr device;
  if (blames_sizes(e) && ::ibv_query_device(context, &device) == 0 &&
      explain_excess(e, {{"max_send_wr", asked.max_send_wr, device_limit(device.max_qp_wr)},
                         {"max_recv_wr", asked.max_recv_wr, device_limit(device.max_qp_wr)},
                         {"max_send_sge", asked.max_send_sge, device_limit(device.max_sge)},
                         {"max_recv_sge", asked.max_recv_sge, device_limit(device.max_sge)}}))
    return;
  e.explain("%s, wr %u+%u, sge %u+%u, inline %u", qp_type_name(type), asked.max_send_wr,
            asked.max_recv_wr, asked.max_send_sge, asked.max_recv_sge, asked.max_inline_data);
  if (e.code() == ENOMEM) detail::explain_no_memory(e, context);
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Creates a queue pair in state RESET. As in C, `attributes.cap` has the actual sizes afterwards.
/// Errors: EINVAL or ENOMEM, naming the size above the device's limit, or else all sizes (the limit
/// of inline data cannot be queried); EOPNOTSUPP for a type that the device does not support.
[[nodiscard]] inline result<unique_qp> create_qp(ref<ibv_pd> pd,
                                                 ibv_qp_init_attr& attributes) noexcept {
  constexpr verb call = verb::create_qp;
  if (!pd.get()) return detail::null_argument(call, "pd");
  if (auto valid = detail::check_qp_queues(call, pd->context, attributes); !valid)
    return failure(valid.error());
  const ibv_qp_cap asked = attributes.cap;  // a failed call may have written to it
  auto qp = detail::obtain<unique_qp>(
      call, pd->context, [&]() noexcept { return ::ibv_create_qp(pd.get(), &attributes); });
  if (!qp) detail::explain_qp_sizes(qp.error(), pd->context, asked, attributes.qp_type);
  return qp;
}

/// The same with extended attributes; comp_mask selects the valid ones. A queue pair with
/// `send_ops_flags` can be posted to through qp_to_qp_ex.
[[nodiscard]] inline result<unique_qp> create_qp_ex(ref<ibv_context> context,
                                                    ibv_qp_init_attr_ex& attributes) noexcept {
  constexpr verb call = verb::create_qp_ex;
  if (!context.get()) return detail::null_argument(call, "context");
  const auto lacks = [&](unsigned bit, const void* pointer) noexcept {
    return (attributes.comp_mask & bit) != 0 && !pointer;
  };
  if (lacks(IBV_QP_INIT_ATTR_PD, attributes.pd))
    return detail::null_argument(call, context.get(), "attributes.pd");
  if (lacks(IBV_QP_INIT_ATTR_XRCD, attributes.xrcd))
    return detail::null_argument(call, context.get(), "attributes.xrcd");
  if (lacks(IBV_QP_INIT_ATTR_IND_TABLE, attributes.rwq_ind_tbl))
    return detail::null_argument(call, context.get(), "attributes.rwq_ind_tbl");
  if (lacks(IBV_QP_INIT_ATTR_RX_HASH, attributes.rx_hash_conf.rx_hash_key) &&
      attributes.rx_hash_conf.rx_hash_key_len != 0)
    return detail::null_argument(call, context.get(), "attributes.rx_hash_conf.rx_hash_key");
  if (auto valid = detail::check_qp_queues(call, context.get(), attributes); !valid)
    return failure(valid.error());
  const ibv_qp_cap asked = attributes.cap;
  auto qp = detail::obtain<unique_qp>(call, context.get(), [&]() noexcept {
    return ::ibv_create_qp_ex(context.get(), &attributes);
  });
  if (!qp) {
    if (qp.error().code() == EOPNOTSUPP)
      qp.error().explain("%s, comp_mask 0x%x", qp_type_name(attributes.qp_type),
                         attributes.comp_mask);
    else
      detail::explain_qp_sizes(qp.error(), context.get(), asked, attributes.qp_type);
  }
  return qp;
}

/// Opens an existing shared (XRC receive) queue pair by its number. Destroying the owner ends this
/// use; the kernel destroys the queue pair after its last use.
[[nodiscard]] inline result<unique_qp> open_qp(ref<ibv_context> context,
                                               ibv_qp_open_attr attributes) noexcept {
  constexpr verb call = verb::open_qp;
  if (!context.get()) return detail::null_argument(call, "context");
  if ((attributes.comp_mask & IBV_QP_OPEN_ATTR_XRCD) != 0 && !attributes.xrcd)
    return detail::null_argument(call, context.get(), "attributes.xrcd");
  auto qp = detail::obtain<unique_qp>(
      call, context.get(), [&]() noexcept { return ::ibv_open_qp(context.get(), &attributes); });
  if (!qp)
    qp.error().explain("qp_num 0x%x, %s, comp_mask 0x%x", attributes.qp_num,
                       qp_type_name(attributes.qp_type), attributes.comp_mask);
  return qp;
}

/// Modifies the attributes that `mask` (ibv_qp_attr_mask) names, without any check. EINVAL for a
/// transition or a value that the kernel does not allow; it does not name the attribute. modify_qp
/// (qp_modify.hpp) does.
[[nodiscard]] inline result<void> modify_qp_unchecked(ref<ibv_qp> qp, ibv_qp_attr attributes,
                                                      int mask) noexcept {
  if (!qp.get()) return detail::null_argument(verb::modify_qp, "qp");
  const ibv_qp_state before = qp->state;
  auto done =
      detail::check(verb::modify_qp, ::ibv_modify_qp(qp.get(), &attributes, mask), qp->context);
  if (!done) {
    done.error().explain("QP 0x%x, from %s", qp->qp_num, qp_state_name(before));
    if ((mask & IBV_QP_STATE) != 0)
      done.error().explain(" to %s", qp_state_name(attributes.qp_state));
    done.error().explain(", mask 0x%x", static_cast<unsigned>(mask));
  }
  return done;
}

/// The attributes of a queue pair.
struct queried_qp {
  ibv_qp_attr attr{};            ///< the requested attributes; a provider may set more
  ibv_qp_init_attr init_attr{};  ///< the attributes of its creation
};

/// Queries the attributes that `mask` (ibv_qp_attr_mask) names; the others are zero or set by the
/// provider. With IBV_QP_STATE, libibverbs also updates `qp->state`.
[[nodiscard]] inline result<queried_qp> query_qp(ref<ibv_qp> qp, int mask) noexcept {
  if (!qp.get()) return detail::null_argument(verb::query_qp, "qp");
  queried_qp answer;
  const int code = ::ibv_query_qp(qp.get(), &answer.attr, mask, &answer.init_attr);
  if (code == 0) [[likely]]
    return answer;
  return failure(error(verb::query_qp, code)
                     .on(qp->context)
                     .explain("QP 0x%x, mask 0x%x", qp->qp_num, static_cast<unsigned>(mask)));
}

/// Sets the rate limit of a queue pair: kbit/s, with the burst and packet sizes in bytes. The
/// limits are in ibv_device_attr_ex::packet_pacing_caps. EOPNOTSUPP from most providers.
[[nodiscard]] inline result<void> modify_qp_rate_limit(ref<ibv_qp> qp,
                                                       ibv_qp_rate_limit_attr attributes) noexcept {
  if (!qp.get()) return detail::null_argument(verb::modify_qp_rate_limit, "qp");
  auto done = detail::check(verb::modify_qp_rate_limit,
                            ::ibv_modify_qp_rate_limit(qp.get(), &attributes), qp->context);
  if (!done)
    done.error().explain("QP 0x%x, rate_limit %u kbit/s", qp->qp_num, attributes.rate_limit);
  return done;
}

/// The enhanced connection options (vendor-specific) of a queue pair.
[[nodiscard]] inline result<ibv_ece> query_ece(ref<ibv_qp> qp) noexcept {
  if (!qp.get()) return detail::null_argument(verb::query_ece, "qp");
  ibv_ece options{};
  const int code = ::ibv_query_ece(qp.get(), &options);
  if (code == 0) [[likely]]
    return options;
  return failure(error(verb::query_ece, code).on(qp->context).explain("QP 0x%x", qp->qp_num));
}

/// Requests enhanced connection options, before the transitions that they affect. As in C,
/// `options` has the accepted ones afterwards. A vendor_id of 0 is EOPNOTSUPP.
[[nodiscard]] inline result<void> set_ece(ref<ibv_qp> qp, ibv_ece& options) noexcept {
  if (!qp.get()) return detail::null_argument(verb::set_ece, "qp");
  auto done = detail::check(verb::set_ece, ::ibv_set_ece(qp.get(), &options), qp->context);
  if (!done)
    done.error().explain("QP 0x%x, vendor_id 0x%x, options 0x%x", qp->qp_num, options.vendor_id,
                         options.options);
  return done;
}

/// Whether the data of one work request of kind `operation` arrives in order, so that its last byte
/// may be polled for: 1 or 0; with flags, which rdma-core has from 46 on, a set of capabilities.
/// The only error is a null `qp`; 0 if the provider does not know.
[[nodiscard]] inline result<int> query_qp_data_in_order(ref<ibv_qp> qp, ibv_wr_opcode operation,
                                                        std::uint32_t flags = 0) noexcept {
  if (!qp.get()) return detail::null_argument(verb::query_qp_data_in_order, "qp");
  return ::ibv_query_qp_data_in_order(qp.get(), operation, flags);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
