// Memory windows.
#pragma once

#include <infiniband/verbs.h>

#include <ibvxx/detail/checks.hpp>
#include <ibvxx/handle.hpp>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct mw_deleter : object_deleter<mw_deleter, ibv_mw, verb::dealloc_mw> {
  static constexpr const char* users = "a bind in progress";
  /// ibv_dealloc_mw calls the provider's operation without checking that it exists.
  [[nodiscard]] static int destroy(ibv_mw* mw) noexcept {
    return mw->context->ops.dealloc_mw ? ::ibv_dealloc_mw(mw) : EOPNOTSUPP;
  }
};
/// A memory window: remote access to part of a memory region, granted and withdrawn by work
/// requests. Deallocating it withdraws the access. Deallocate it before the region that it is bound
/// to, and before its protection domain.
using unique_mw = unique_handle<ibv_mw*, mw_deleter>;

/// Allocates a window that is not bound yet; `type` is IBV_MW_TYPE_1 or IBV_MW_TYPE_2. The device
/// capabilities (IBV_DEVICE_MEM_WINDOW, ..._TYPE_2A, ..._TYPE_2B) have the supported types.
[[nodiscard]] inline result<unique_mw> alloc_mw(ref<ibv_pd> pd, ibv_mw_type type) noexcept {
  if (!pd.get()) return detail::null_argument(verb::alloc_mw, "pd");
  auto mw = detail::obtain<unique_mw>(verb::alloc_mw, pd->context,
                                      [&]() noexcept { return ::ibv_alloc_mw(pd.get(), type); });
  if (!mw) mw.error().explain("type %d", static_cast<int>(type));
  return mw;
}

/// Posts a bind of a type 1 window to a queue pair. On success `mw->rkey` is the new key at once,
/// but it is valid only after the bind has completed; keep the old key in case the bind completes
/// with an error. A type 2 window is bound by posting IBV_WR_BIND_MW instead. Errors: EINVAL (type
/// 2; an address without a region), EPERM (window and region in different protection domains),
/// ENOMEM (queue full).
[[nodiscard]] inline result<void> bind_mw(ref<ibv_qp> qp, ref<ibv_mw> mw,
                                          ibv_mw_bind request) noexcept {
  constexpr verb call = verb::bind_mw;
  if (!qp.get()) return detail::null_argument(call, "qp");
  if (!mw.get()) return detail::null_argument(call, "mw");
  const ibv_mw_bind_info& info = request.bind_info;
  if (mw->type != IBV_MW_TYPE_1)
    return failure(detail::refusal(call, mw->context)
                       .explain("mw is of type %d: only type 1 is bound by this call",
                                static_cast<int>(mw->type)));
  if (!info.mr && (info.addr != 0 || info.length != 0))
    return detail::null_argument(call, mw->context, "request.bind_info.mr");
  if (!mw->context->ops.bind_mw) return failure(error(call, EOPNOTSUPP).on(mw->context));
  auto done = detail::check(call, ::ibv_bind_mw(qp.get(), mw.get(), &request), mw->context);
  if (!done) {
    error& e = done.error();
    if (e.code() == EPERM && info.mr && info.mr->pd != mw->pd)
      e.explain("mw and request.bind_info.mr are in different protection domains");
    else
      e.explain("%llu bytes at 0x%llx, access 0x%x", static_cast<unsigned long long>(info.length),
                static_cast<unsigned long long>(info.addr), info.mw_access_flags);
  }
  return done;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
