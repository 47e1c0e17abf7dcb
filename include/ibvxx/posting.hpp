// Posting work requests to queue pairs. This is the data path: pointers must not be null, and
// success costs what the C call costs.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/handle.hpp>
#include <ibvxx/qp_transition.hpp>

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// The error for a list in which `bad` is the first request that was refused; null if the provider
/// named none (libibverbs' substitutes for missing functions do not: rdma-core 44, dummy_ops.c). A
/// return value of -1 is not an errno but a plain refusal (mlx4_post_srq_recv, mthca_*_post_send).
template <class Request>
[[nodiscard, gnu::cold, gnu::noinline]] error bad_request(verb call, int code,
                                                          const ibv_context* context,
                                                          const Request* list,
                                                          const Request* bad) noexcept {
  error e(call, code == -1 ? 0 : code);
  e.on(context);
  std::size_t index = 0;
  const Request* request = bad ? list : nullptr;
  while (request && request != bad) {
    request = request->next;
    ++index;
  }
  if (request)
    e.explain("work request %zu of the list, wr_id 0x%llx", index,
              static_cast<unsigned long long>(request->wr_id));
  if (e.code() == ENOMEM)
    e.explain("%sthe queue is full, or a size is above its limit", request ? "; " : "");
  return e;
}

/// The same for a queue pair, with the state that libibverbs last knew.
template <class Request>
[[nodiscard, gnu::cold, gnu::noinline]] error bad_request(verb call, int code, const ibv_qp* qp,
                                                          const Request* list,
                                                          const Request* bad) noexcept {
  error e = bad_request(call, code, qp->context, list, bad);
  return e.explain("%sQP 0x%x, state %s", e.detail().empty() ? "" : "; ", qp->qp_num,
                   qp_state_name(qp->state));
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Posts a list of requests to the send queue. On failure the requests before the refused one are
/// posted; the error has its index, counted from 0, and `bad_wr`, if given, is set to it (to null
/// if the provider names none). Errors: ENOMEM (queue full; from some providers also too many SGEs
/// or inline bytes), EINVAL (state, opcode, SGEs). With IBV_SEND_INLINE the data may be reused at
/// once; otherwise only after the completion.
[[nodiscard]] inline result<void> post_send(ref<ibv_qp> qp, ibv_send_wr* list,
                                            ibv_send_wr** bad_wr = nullptr) noexcept {
  ibv_send_wr* bad = nullptr;
  const int code = ::ibv_post_send(qp.get(), list, &bad);
  if (code == 0) [[likely]]
    return {};
  if (bad_wr) *bad_wr = bad;
  return failure(detail::bad_request(verb::post_send, code, qp.get(), list, bad));
}

/// Posts a list of requests to the receive queue of a queue pair without an SRQ; as post_send.
[[nodiscard]] inline result<void> post_recv(ref<ibv_qp> qp, ibv_recv_wr* list,
                                            ibv_recv_wr** bad_wr = nullptr) noexcept {
  ibv_recv_wr* bad = nullptr;
  const int code = ::ibv_post_recv(qp.get(), list, &bad);
  if (code == 0) [[likely]]
    return {};
  if (bad_wr) *bad_wr = bad;
  return failure(detail::bad_request(verb::post_recv, code, qp.get(), list, bad));
}

/// The interface of a queue pair for building requests with one call for each part (ibv_wr_send,
/// ibv_wr_set_sge, ... as in C); null if it was not created with `send_ops_flags`. It belongs to
/// the queue pair. Only for queue pairs from create_qp_ex: for others of some providers libibverbs
/// reads past the end of the object (rdma-core 44).
[[nodiscard]] inline ibv_qp_ex* qp_to_qp_ex(ref<ibv_qp> qp) noexcept {
  return qp.get() ? ::ibv_qp_to_qp_ex(qp.get()) : nullptr;
}

/// Opens a batch. Until wr_complete or wr_abort the provider may hold the lock of the send queue.
inline void wr_start(ref<ibv_qp_ex> qp) noexcept {
  ::ibv_wr_start(qp.get());
}

/// Closes the batch: all of its requests are posted, or on failure none. Returns the first error of
/// the building calls.
[[nodiscard]] inline result<void> wr_complete(ref<ibv_qp_ex> qp) noexcept {
  const int code = ::ibv_wr_complete(qp.get());
  if (code == 0) [[likely]]
    return {};
  return failure(
      detail::bad_request<ibv_send_wr>(verb::wr_complete, code, &qp->qp_base, nullptr, nullptr));
}

/// Closes the batch and drops its requests.
inline void wr_abort(ref<ibv_qp_ex> qp) noexcept {
  ::ibv_wr_abort(qp.get());
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
