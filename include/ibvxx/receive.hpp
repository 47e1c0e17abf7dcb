// Receive queues apart from a queue pair: shared receive queues, work queues, and the tables that
// distribute packets over them.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/checks.hpp>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/handle.hpp>
#include <ibvxx/posting.hpp>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct srq_deleter : object_deleter<srq_deleter, ibv_srq, verb::destroy_srq> {
  static constexpr const char* users = "a queue pair";
  [[nodiscard]] static int destroy(ibv_srq* srq) noexcept { return ::ibv_destroy_srq(srq); }
};
/// A shared receive queue. Destroy the queue pairs that use it first: EBUSY otherwise. Destroying
/// it waits, without a limit, until every async event read for it has been acknowledged.
using unique_srq = unique_handle<ibv_srq*, srq_deleter>;

struct wq_deleter : object_deleter<wq_deleter, ibv_wq, verb::destroy_wq> {
  static constexpr const char* users = "an indirection table";
  [[nodiscard]] static int destroy(ibv_wq* wq) noexcept { return ::ibv_destroy_wq(wq); }
};
/// A work queue: a receive queue that an indirection table refers to. Destroy it before its CQ and
/// its protection domain, and after the tables that contain it.
using unique_wq = unique_handle<ibv_wq*, wq_deleter>;

struct rwq_ind_table_deleter
    : object_deleter<rwq_ind_table_deleter, ibv_rwq_ind_table, verb::destroy_rwq_ind_table> {
  static constexpr const char* users = "a queue pair";
  [[nodiscard]] static int destroy(ibv_rwq_ind_table* table) noexcept {
    return ::ibv_destroy_rwq_ind_table(table);
  }
};
/// An indirection table: it distributes the packets of a hashing queue pair over work queues.
using unique_rwq_ind_table = unique_handle<ibv_rwq_ind_table*, rwq_ind_table_deleter>;

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Explains a failed creation or change by the size above the device's limit, or else by both
/// sizes.
[[gnu::cold]] inline void explain_srq_sizes(error& e, ibv_context* context, std::uint32_t max_wr,
                                            std::uint32_t max_sge) noexcept {
  const detail::errno_guard keep;
  ibv_device_attr device;
  if (blames_sizes(e) && ::ibv_query_device(context, &device) == 0 &&
      explain_excess(e, {{"max_wr", max_wr, device_limit(device.max_srq_wr)},
                         {"max_sge", max_sge, device_limit(device.max_srq_sge)}}))
    return;
  e.explain("max_wr %u, max_sge %u", max_wr, max_sge);
  if (e.code() == ENOMEM) detail::explain_no_memory(e, context);
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Creates a shared receive queue. As in C, `attributes.attr` has the actual sizes afterwards.
/// Errors: EINVAL or ENOMEM, naming the size above the device's limit, or else the sizes.
[[nodiscard]] inline result<unique_srq> create_srq(ref<ibv_pd> pd,
                                                   ibv_srq_init_attr& attributes) noexcept {
  constexpr verb call = verb::create_srq;
  if (!pd.get()) return detail::null_argument(call, "pd");
  const ibv_srq_attr asked = attributes.attr;  // a failed call may have written to it
  auto srq = detail::obtain<unique_srq>(
      call, pd->context, [&]() noexcept { return ::ibv_create_srq(pd.get(), &attributes); });
  if (!srq) detail::explain_srq_sizes(srq.error(), pd->context, asked.max_wr, asked.max_sge);
  return srq;
}

/// The same with extended attributes, for XRC and tag matching; comp_mask selects the valid ones.
/// The domains and the completion queue in them must outlive the queue.
[[nodiscard]] inline result<unique_srq> create_srq_ex(ref<ibv_context> context,
                                                      ibv_srq_init_attr_ex& attributes) noexcept {
  constexpr verb call = verb::create_srq_ex;
  if (!context.get()) return detail::null_argument(call, "context");
  const auto lacks = [&](unsigned bit, const void* pointer) noexcept {
    return (attributes.comp_mask & bit) != 0 && !pointer;
  };
  if (lacks(IBV_SRQ_INIT_ATTR_PD, attributes.pd))
    return detail::null_argument(call, context.get(), "attributes.pd");
  if (lacks(IBV_SRQ_INIT_ATTR_XRCD, attributes.xrcd))
    return detail::null_argument(call, context.get(), "attributes.xrcd");
  if (lacks(IBV_SRQ_INIT_ATTR_CQ, attributes.cq))
    return detail::null_argument(call, context.get(), "attributes.cq");
  const ibv_srq_attr asked = attributes.attr;
  auto srq = detail::obtain<unique_srq>(call, context.get(), [&]() noexcept {
    return ::ibv_create_srq_ex(context.get(), &attributes);
  });
  if (!srq) {
    if (srq.error().code() == EOPNOTSUPP)
      srq.error().explain("type %d, comp_mask 0x%x", static_cast<int>(attributes.srq_type),
                          attributes.comp_mask);
    else
      detail::explain_srq_sizes(srq.error(), context.get(), asked.max_wr, asked.max_sge);
  }
  return srq;
}

/// Resizes the queue (IBV_SRQ_MAX_WR; not every device supports it) or arms its low watermark
/// (IBV_SRQ_LIMIT: one IBV_EVENT_SRQ_LIMIT_REACHED once fewer requests than that are left), as
/// `mask` selects. As in C, the provider may write the actual values to `attributes`.
[[nodiscard]] inline result<void> modify_srq(ref<ibv_srq> srq, ibv_srq_attr& attributes,
                                             int mask) noexcept {
  if (!srq.get()) return detail::null_argument(verb::modify_srq, "srq");
  const ibv_srq_attr asked = attributes;
  auto done =
      detail::check(verb::modify_srq, ::ibv_modify_srq(srq.get(), &attributes, mask), srq->context);
  if (!done)
    done.error().explain("mask 0x%x, max_wr %u, srq_limit %u", static_cast<unsigned>(mask),
                         asked.max_wr, asked.srq_limit);
  return done;
}

/// The actual sizes, and the low watermark: 0 if it is not armed.
[[nodiscard]] inline result<ibv_srq_attr> query_srq(ref<ibv_srq> srq) noexcept {
  if (!srq.get()) return detail::null_argument(verb::query_srq, "srq");
  ibv_srq_attr attributes{};
  const int code = ::ibv_query_srq(srq.get(), &attributes);
  if (code == 0) [[likely]]
    return attributes;
  return failure(error(verb::query_srq, code).on(srq->context));
}

/// The number with which XRC senders address the queue. EOPNOTSUPP if it has none.
[[nodiscard]] inline result<std::uint32_t> get_srq_num(ref<ibv_srq> srq) noexcept {
  if (!srq.get()) return detail::null_argument(verb::get_srq_num, "srq");
  std::uint32_t number = 0;
  const int code = ::ibv_get_srq_num(srq.get(), &number);
  if (code == 0) [[likely]]
    return number;
  return failure(error(verb::get_srq_num, code).on(srq->context));
}

/// Posts a list of requests to a shared receive queue; as post_send (posting.hpp).
[[nodiscard]] inline result<void> post_srq_recv(ref<ibv_srq> srq, ibv_recv_wr* list,
                                                ibv_recv_wr** bad_wr = nullptr) noexcept {
  ibv_recv_wr* bad = nullptr;
  const int code = ::ibv_post_srq_recv(srq.get(), list, &bad);
  if (code == 0) [[likely]]
    return {};
  if (bad_wr) *bad_wr = bad;
  return failure(detail::bad_request(verb::post_srq_recv, code, srq->context, list, bad));
}

/// Posts a list of operations on the tag list of a tag-matching queue; as post_send (posting.hpp).
/// IBV_WR_TAG_ADD writes the handle of the entry to its request. EOPNOTSUPP from other queues.
[[nodiscard]] inline result<void> post_srq_ops(ref<ibv_srq> srq, ibv_ops_wr* list,
                                               ibv_ops_wr** bad_wr = nullptr) noexcept {
  ibv_ops_wr* bad = nullptr;
  const int code = ::ibv_post_srq_ops(srq.get(), list, &bad);
  if (code == 0) [[likely]]
    return {};
  if (bad_wr) *bad_wr = bad;
  return failure(detail::bad_request(verb::post_srq_ops, code, srq->context, list, bad));
}

/// Creates a work queue in state RESET, of type IBV_WQT_RQ. `attributes.pd` and `.cq` must not be
/// null. As in C, max_wr and max_sge have the actual sizes afterwards. EOPNOTSUPP from most
/// providers.
[[nodiscard]] inline result<unique_wq> create_wq(ref<ibv_context> context,
                                                 ibv_wq_init_attr& attributes) noexcept {
  constexpr verb call = verb::create_wq;
  if (!context.get()) return detail::null_argument(call, "context");
  if (!attributes.pd) return detail::null_argument(call, context.get(), "attributes.pd");
  if (!attributes.cq) return detail::null_argument(call, context.get(), "attributes.cq");
  const std::uint32_t max_wr = attributes.max_wr, max_sge = attributes.max_sge;
  auto wq = detail::obtain<unique_wq>(
      call, context.get(), [&]() noexcept { return ::ibv_create_wq(context.get(), &attributes); });
  if (!wq)
    wq.error().explain("max_wr %u, max_sge %u, create_flags 0x%x", max_wr, max_sge,
                       attributes.create_flags);
  return wq;
}

/// Modifies what `attributes.attr_mask` (ibv_wq_attr_mask) names; a work queue receives in state
/// RDY (IBV_WQS_RDY) only. As in C, the provider may write the actual values to `attributes`.
[[nodiscard]] inline result<void> modify_wq(ref<ibv_wq> wq, ibv_wq_attr& attributes) noexcept {
  if (!wq.get()) return detail::null_argument(verb::modify_wq, "wq");
  const ibv_wq_attr asked = attributes;
  auto done = detail::check(verb::modify_wq, ::ibv_modify_wq(wq.get(), &attributes), wq->context);
  if (!done)
    done.error().explain("WQ 0x%x, attr_mask 0x%x, wq_state %d", wq->wq_num, asked.attr_mask,
                         static_cast<int>(asked.wq_state));
  return done;
}

/// Posts a list of requests to a work queue; as post_send (posting.hpp).
[[nodiscard]] inline result<void> post_wq_recv(ref<ibv_wq> wq, ibv_recv_wr* list,
                                               ibv_recv_wr** bad_wr = nullptr) noexcept {
  ibv_recv_wr* bad = nullptr;
  const int code = ::ibv_post_wq_recv(wq.get(), list, &bad);
  if (code == 0) [[likely]]
    return {};
  if (bad_wr) *bad_wr = bad;
  return failure(detail::bad_request(verb::post_wq_recv, code, wq->context, list, bad));
}

/// Creates an indirection table over the 2^`log_ind_tbl_size` work queues at `ind_tbl`; a work
/// queue may occur in several entries. The array is read during the call only; the work queues must
/// outlive the table. The limit is ibv_device_attr_ex::rss_caps.max_rwq_indirection_table_size.
[[nodiscard]] inline result<unique_rwq_ind_table> create_rwq_ind_table(
    ref<ibv_context> context, ibv_rwq_ind_table_init_attr attributes) noexcept {
  constexpr verb call = verb::create_rwq_ind_table;
  if (!context.get()) return detail::null_argument(call, "context");
  if (!attributes.ind_tbl) return detail::null_argument(call, context.get(), "attributes.ind_tbl");
  if (attributes.log_ind_tbl_size > 31)
    return failure(detail::refusal(call, context.get())
                       .explain("attributes.log_ind_tbl_size %u is above the limit of 31",
                                attributes.log_ind_tbl_size));
  const std::size_t size = std::size_t{1} << attributes.log_ind_tbl_size;
  for (std::size_t i = 0; i < size; ++i)
    if (!attributes.ind_tbl[i])
      return failure(
          detail::refusal(call, context.get()).explain("attributes.ind_tbl[%zu] is null", i));
  auto table = detail::obtain<unique_rwq_ind_table>(call, context.get(), [&]() noexcept {
    return ::ibv_create_rwq_ind_table(context.get(), &attributes);
  });
  if (!table) table.error().explain("%zu entries", size);
  return table;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
