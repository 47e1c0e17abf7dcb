// Completion channels and completion queues.
#pragma once

#include <infiniband/verbs.h>

#include <climits>
#include <ibvxx/handle.hpp>
#include <ibvxx/hints.hpp>
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

[[nodiscard]] inline result<unique_comp_channel> create_comp_channel(
    ref<ibv_context> context) noexcept {
  if (!context.get()) return impl::null_argument(verb::create_comp_channel, "context");
  errno = 0;
  if (unique_comp_channel channel{::ibv_create_comp_channel(context.get())}) [[likely]]
    return channel;
  error e(verb::create_comp_channel, errno);
  e.on(context.get());
  if (e.code() == EMFILE || e.code() == ENFILE) detail::explain_descriptor_limit(e);
  return failure(e);
}

namespace impl {

/// After ibv_create_cq failed: which of its arguments the device would not have.
[[gnu::cold]] inline void explain_cq_limits(error& e, ibv_context* context, int cqe,
                                            int comp_vector) noexcept {
  const ibvxx::detail::errno_keeper keep;
  ibv_device_attr device;
  if (comp_vector < 0 || comp_vector >= context->num_comp_vectors)
    e.explain("comp_vector %d is outside 0..%d", comp_vector, context->num_comp_vectors - 1);
  else if (::ibv_query_device(context, &device) == 0 && cqe > device.max_cqe)
    e.explain("cqe %d is above the device's limit of %d", cqe, device.max_cqe);
  else
    e.explain("cqe %d, comp_vector %d", cqe, comp_vector);
}

}  // namespace impl

/// A completion queue with room for at least `cqe` entries (the real size is `cq->cqe`); `channel`
/// may be null: the queue is then only polled. `comp_vector` counts from 0 and must be below the
/// context's num_comp_vectors. `cq_context` comes back with each event. Errors: EINVAL naming the
/// argument and the limit; ENOMEM.
[[nodiscard]] inline result<unique_cq> create_cq(ref<ibv_context> context, int cqe,
                                                 ibv_comp_channel* channel = nullptr,
                                                 int comp_vector = 0,
                                                 void* cq_context = nullptr) noexcept {
  if (!context.get()) return impl::null_argument(verb::create_cq, "context");
  if (cqe < 1)
    return failure(
        error(verb::create_cq, EINVAL).on(context.get()).explain("cqe %d is below 1", cqe));
  errno = 0;
  if (unique_cq cq{::ibv_create_cq(context.get(), cqe, cq_context, channel, comp_vector)})
      [[likely]]
    return cq;
  error e(verb::create_cq, errno);
  e.on(context.get());
  impl::explain_cq_limits(e, context.get(), cqe, comp_vector);
  if (e.code() == ENOMEM) detail::explain_no_memory(e, context.get());
  return failure(e);
}

/// Asks for one event at the next completion (or the next solicited one). One-shot: arm, then poll
/// until empty, then wait.
[[nodiscard]] inline result<void> req_notify_cq(ref<ibv_cq> cq,
                                                bool solicited_only = false) noexcept {
  return impl::check(verb::req_notify_cq, ::ibv_req_notify_cq(cq.get(), solicited_only ? 1 : 0),
                     cq->context);
}

/// Takes up to `completions.size()` completions; the number taken is below that exactly when the
/// queue is empty. `cq` must not be null.
[[nodiscard]] inline result<std::size_t> poll_cq(ref<ibv_cq> cq,
                                                 std::span<ibv_wc> completions) noexcept {
  const std::size_t room = completions.size() < INT_MAX ? completions.size() : INT_MAX;
  const int taken = ::ibv_poll_cq(cq.get(), static_cast<int>(room), completions.data());
  if (taken >= 0) [[likely]]
    return static_cast<std::size_t>(taken);
  // The value of a negative answer is unspecified (manual page): there is no errno to report.
  return failure(error(verb::poll_cq, 0).on(cq->context));
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
