// Protection domains.
#pragma once

#include <infiniband/verbs.h>

#include <ibvxx/handle.hpp>
#include <ibvxx/hints.hpp>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct pd_deleter : object_deleter<pd_deleter, ibv_pd, verb::dealloc_pd> {
  static constexpr const char* users = "a memory region, queue pair, SRQ, AH, MW or WQ";
  [[nodiscard]] static int destroy(ibv_pd* pd) noexcept { return ::ibv_dealloc_pd(pd); }
};
/// A protection domain. Destroy what was made from it first: EBUSY otherwise.
using unique_pd = unique_handle<ibv_pd*, pd_deleter>;

[[nodiscard]] inline result<unique_pd> alloc_pd(ref<ibv_context> context) noexcept {
  if (!context.get()) return impl::null_argument(verb::alloc_pd, "context");
  errno = 0;
  if (unique_pd pd{::ibv_alloc_pd(context.get())}) [[likely]]
    return pd;
  error e(verb::alloc_pd, errno);
  e.on(context.get());
  return failure(e);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
