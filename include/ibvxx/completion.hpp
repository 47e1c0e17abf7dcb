// Completion channels and completion queues, polled by array or by iteration.
#pragma once

#include <infiniband/verbs.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/checks.hpp>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/handle.hpp>
#include <span>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct comp_channel_deleter
    : object_deleter<comp_channel_deleter, ibv_comp_channel, verb::destroy_comp_channel> {
  static constexpr const char* users = "a completion queue";
  [[nodiscard]] static int destroy(ibv_comp_channel* channel) noexcept {
    return ::ibv_destroy_comp_channel(channel);
  }
};
/// A completion channel. It must outlive the completion queues made on it: EBUSY otherwise.
using unique_comp_channel = unique_handle<ibv_comp_channel*, comp_channel_deleter>;

struct cq_deleter : object_deleter<cq_deleter, ibv_cq, verb::destroy_cq> {
  static constexpr const char* users = "a queue pair or work queue";
  [[nodiscard]] static int destroy(ibv_cq* cq) noexcept { return ::ibv_destroy_cq(cq); }
};
/// A completion queue. Destroying it waits, without a limit, until every event read for it has been
/// acknowledged.
using unique_cq = unique_handle<ibv_cq*, cq_deleter>;

/// Creates a completion channel. Errors: EMFILE or ENFILE, naming the descriptor limit.
[[nodiscard]] inline result<unique_comp_channel> create_comp_channel(
    ref<ibv_context> context) noexcept {
  if (!context.get()) return detail::null_argument(verb::create_comp_channel, "context");
  errno = 0;
  if (unique_comp_channel channel{::ibv_create_comp_channel(context.get())}) [[likely]]
    return channel;
  error e(verb::create_comp_channel, errno);
  e.on(context.get());
  if (e.code() == EMFILE || e.code() == ENFILE) detail::explain_descriptor_limit(e);
  return failure(e);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Explains a failed ibv_create_cq: names the argument that is out of range, or else both.
[[gnu::cold]] inline void explain_cq_limits(error& e, ibv_context* context, long long cqe,
                                            long long comp_vector) noexcept {
  const detail::errno_guard keep;
  ibv_device_attr device;
  if (comp_vector < 0 || comp_vector >= context->num_comp_vectors)
    e.explain("comp_vector %lld is outside 0..%d", comp_vector, context->num_comp_vectors - 1);
  else if (::ibv_query_device(context, &device) == 0 && cqe > device.max_cqe)
    e.explain("cqe %lld is above the device's limit of %d", cqe, device.max_cqe);
  else
    e.explain("cqe %lld, comp_vector %lld", cqe, comp_vector);
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Creates a completion queue with at least `cqe` entries; the actual number is `cq->cqe`.
/// `channel` may be null: the queue can then only be polled. `comp_vector` counts from 0 and must
/// be below the context's num_comp_vectors. Each event carries `cq_context`. Errors: EINVAL naming
/// the argument and the limit; ENOMEM.
[[nodiscard]] inline result<unique_cq> create_cq(ref<ibv_context> context, int cqe,
                                                 ibv_comp_channel* channel = nullptr,
                                                 int comp_vector = 0,
                                                 void* cq_context = nullptr) noexcept {
  if (!context.get()) return detail::null_argument(verb::create_cq, "context");
  if (cqe < 1)
    return failure(
        error(verb::create_cq, EINVAL).on(context.get()).explain("cqe %d is below 1", cqe));
  errno = 0;
  if (unique_cq cq{::ibv_create_cq(context.get(), cqe, cq_context, channel, comp_vector)})
      [[likely]]
    return cq;
  error e(verb::create_cq, errno);
  e.on(context.get());
  detail::explain_cq_limits(e, context.get(), cqe, comp_vector);
  if (e.code() == ENOMEM) detail::explain_no_memory(e, context.get());
  return failure(e);
}

struct cq_ex_deleter : object_deleter<cq_ex_deleter, ibv_cq_ex, verb::destroy_cq> {
  static constexpr const char* users = cq_deleter::users;
  [[nodiscard]] static int destroy(ibv_cq_ex* cq) noexcept {
    return ::ibv_destroy_cq(::ibv_cq_ex_to_cq(cq));
  }
};
/// An extended completion queue, which is polled by iteration and offers more fields of each
/// completion. It converts to ref<ibv_cq>.
class [[nodiscard]] unique_cq_ex : public unique_handle<ibv_cq_ex*, cq_ex_deleter> {
 public:
  using unique_handle::unique_handle;

  [[nodiscard]] operator ref<ibv_cq>() const& noexcept {
    return get() ? ::ibv_cq_ex_to_cq(get()) : static_cast<ibv_cq*>(nullptr);
  }
  operator ref<ibv_cq>() const&& = delete;
};

/// Creates an extended completion queue. `attributes.wc_flags` (ibv_create_cq_wc_flags) selects the
/// fields of a completion that can be read besides status and wr_id; otherwise as create_cq.
/// EOPNOTSUPP for flags that the device does not support, and from providers without extended
/// queues.
[[nodiscard]] inline result<unique_cq_ex> create_cq_ex(ref<ibv_context> context,
                                                       ibv_cq_init_attr_ex attributes) noexcept {
  constexpr verb call = verb::create_cq_ex;
  if (!context.get()) return detail::null_argument(call, "context");
  // The providers use signed numbers.
  if (attributes.cqe < 1 || attributes.cqe > INT_MAX)
    return failure(detail::refusal(call, context.get())
                       .explain("attributes.cqe %u is outside 1..%d", attributes.cqe, INT_MAX));
  if ((attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 && !attributes.parent_domain)
    return detail::null_argument(call, context.get(), "attributes.parent_domain");
  auto cq = detail::obtain<unique_cq_ex>(call, context.get(), [&]() noexcept {
    return ::ibv_create_cq_ex(context.get(), &attributes);
  });
  if (!cq) {
    error& e = cq.error();
    if (e.code() == EOPNOTSUPP)
      e.explain("wc_flags 0x%llx, flags 0x%x", static_cast<unsigned long long>(attributes.wc_flags),
                attributes.flags);
    else
      detail::explain_cq_limits(e, context.get(), attributes.cqe, attributes.comp_vector);
    if (e.code() == ENOMEM) detail::explain_no_memory(e, context.get());
  }
  return cq;
}

/// Resizes a completion queue to at least `cqe` entries; the actual number is `cq->cqe` afterwards.
/// EINVAL for a size below the number of completions in the queue.
[[nodiscard]] inline result<void> resize_cq(ref<ibv_cq> cq, int cqe) noexcept {
  if (!cq.get()) return detail::null_argument(verb::resize_cq, "cq");
  if (cqe < 1)
    return failure(detail::refusal(verb::resize_cq, cq->context).explain("cqe %d is below 1", cqe));
  errno = 0;
  const int code = ::ibv_resize_cq(cq.get(), cqe);
  if (code == 0) [[likely]]
    return {};
  // Without memory for the new queue mlx4, mlx5 and mthca return -1, and either set errno or leave
  // it at 0 (rdma-core 44 to 65).
  error e(verb::resize_cq, code == -1 ? errno : code);
  e.on(cq->context);
  ibv_device_attr device;
  const detail::errno_guard keep;
  if (!detail::blames_sizes(e) || ::ibv_query_device(cq->context, &device) != 0 ||
      cqe <= device.max_cqe)
    e.explain("from cqe %d to %d", cq->cqe, cqe);
  else
    e.explain("cqe %d is above the device's limit of %d", cqe, device.max_cqe);
  return failure(e);
}

/// Sets event moderation: `attributes.moderate` holds a count and a period in microseconds, and
/// attr_mask must contain IBV_CQ_ATTR_MODERATE. EOPNOTSUPP from providers without moderation.
[[nodiscard]] inline result<void> modify_cq(ref<ibv_cq> cq,
                                            ibv_modify_cq_attr attributes) noexcept {
  if (!cq.get()) return detail::null_argument(verb::modify_cq, "cq");
  auto done = detail::check(verb::modify_cq, ::ibv_modify_cq(cq.get(), &attributes), cq->context);
  if (!done)
    done.error().explain("attr_mask 0x%x, count %u, period %u us", attributes.attr_mask,
                         unsigned{attributes.moderate.cq_count},
                         unsigned{attributes.moderate.cq_period});
  return done;
}

/// Arms the queue: one event at the next completion, or at the next solicited one. One-shot: arm,
/// poll until the queue is empty, then wait. `cq` must not be null.
[[nodiscard]] inline result<void> req_notify_cq(ref<ibv_cq> cq,
                                                bool solicited_only = false) noexcept {
  return detail::check(verb::req_notify_cq, ::ibv_req_notify_cq(cq.get(), solicited_only ? 1 : 0),
                       cq->context);
}

/// Polls up to `completions.size()` completions and returns their number, which is smaller only if
/// the queue is empty. `cq` must not be null.
[[nodiscard]] inline result<std::size_t> poll_cq(ref<ibv_cq> cq,
                                                 std::span<ibv_wc> completions) noexcept {
  const std::size_t room = completions.size() < INT_MAX ? completions.size() : INT_MAX;
  const auto taken =
      static_cast<unsigned>(::ibv_poll_cq(cq.get(), static_cast<int>(room), completions.data()));
  if (taken <= room) [[likely]]
    return taken;
  // A negative return value is a failure (manual page). A value above the size of the array is not
  // a count either: libibverbs' substitute for a missing provider function returns EOPNOTSUPP
  // (rdma-core 44, dummy_ops.c).
  const int code = taken > INT_MAX ? 0 : static_cast<int>(taken);
  return failure(error(verb::poll_cq, code).on(cq->context));
}

/// Begins an iteration. True: a completion can be read from `cq` (`cq->status`, `cq->wr_id`,
/// ibv_wc_read_*), and end_poll must follow; until then the provider may hold the lock of the
/// queue. False: the queue is empty. `cq` must not be null. See also poll_batch.
[[nodiscard]] inline result<bool> start_poll(ref<ibv_cq_ex> cq,
                                             ibv_poll_cq_attr attributes = {}) noexcept {
  const int code = ::ibv_start_poll(cq.get(), &attributes);
  if (code == 0) [[likely]]
    return true;
  if (code == ENOENT || code == -ENOENT) return false;
  return failure(error(verb::start_poll, code).on(cq->context));
}

/// Moves to the next completion: true if there is one. After false or an error, too, end_poll must
/// follow.
[[nodiscard]] inline result<bool> next_poll(ref<ibv_cq_ex> cq) noexcept {
  const int code = ::ibv_next_poll(cq.get());
  if (code == 0) [[likely]]
    return true;
  if (code == ENOENT || code == -ENOENT) return false;
  return failure(error(verb::next_poll, code).on(cq->context));
}

/// Ends the iteration: frees the slots that were read and releases the lock of the queue.
inline void end_poll(ref<ibv_cq_ex> cq) noexcept {
  ::ibv_end_poll(cq.get());
}

/// An iteration whose destructor ends it, so that it is ended on every path:
///
///     ibvxx::poll_batch batch(cq);
///     while (batch.next().value_or(false)) use(cq->wr_id, ibv_wc_read_byte_len(cq.get()));
///
/// One thread at a time; the queue must outlive it. It adds no cost to the three calls.
class [[nodiscard]] poll_batch {
 public:
  explicit poll_batch(ref<ibv_cq_ex> cq) noexcept : cq_(cq.get()) {}
  poll_batch(const poll_batch&) = delete;
  poll_batch& operator=(const poll_batch&) = delete;
  ~poll_batch() { end(); }

  /// Moves to the first completion, or to the next. After false or an error it may be called again.
  [[nodiscard]] result<bool> next() noexcept {
    if (started_) return next_poll(cq_);
    auto first = start_poll(cq_);
    started_ = first && *first;
    return first;
  }

  /// Ends the iteration if there is one. A later next() begins another.
  void end() noexcept {
    if (!started_) return;
    started_ = false;
    end_poll(cq_);
  }

 private:
  ibv_cq_ex* cq_;
  bool started_ = false;
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
