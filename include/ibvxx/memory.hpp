// Memory regions.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/handle.hpp>
#include <ibvxx/hints.hpp>
#include <span>
#include <type_traits>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct mr_deleter : object_deleter<mr_deleter, ibv_mr, verb::dereg_mr> {
  static constexpr const char* users = "a memory window";
  [[nodiscard]] static int destroy(ibv_mr* mr) noexcept { return ::ibv_dereg_mr(mr); }
};
/// A registered memory region. It pins the memory, it does not own it: keep the memory alive until
/// the region is gone. Posted work requests do not hold a region; deregistering while they are
/// under way makes them fail.
using unique_mr = unique_handle<ibv_mr*, mr_deleter>;

namespace impl {

/// The access bits that this toolkit lets through: all that verbs.h of rdma-core 44 defines, the
/// two FLUSH bits that came later, and the range that providers may ignore.
inline constexpr unsigned known_access = 0x3ffU | IBV_ACCESS_OPTIONAL_RANGE;

/// What can be seen to be wrong with a region before the kernel is asked (manual page of
/// ibv_reg_mr; the kernel itself says EINVAL, or EFAULT for a null address).
[[nodiscard]] inline result<void> check_region(verb call, ibv_context* context, const void* address,
                                               std::size_t length, int access) noexcept {
  error e(call, EINVAL);
  e.on(context);
  const auto bits = static_cast<unsigned>(access);
  constexpr unsigned remote_writers = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if (address == nullptr)
    e.explain("address is null");
  else if (length == 0)
    e.explain("length is 0: at least 1 byte is needed");
  else if (reinterpret_cast<std::uintptr_t>(address) + length < length)
    e.explain("length %zu at %p wraps around the address space", length, address);
  else if ((bits & ~known_access) != 0)
    e.explain("access 0x%x has unknown bits 0x%x", bits, bits & ~known_access);
  else if ((bits & remote_writers) != 0 && (bits & IBV_ACCESS_LOCAL_WRITE) == 0)
    e.explain("access 0x%x: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE", bits);
  else
    return {};
  return failure(e);
}

/// ibv_reg_mr, with the errno it leaves. The macro of that name chooses between two functions by
/// constant folding; a value that is not a constant always takes ibv_reg_mr_iova2, which knows the
/// optional access bits.
[[nodiscard]] inline ibv_mr* reg_mr_unchecked(ibv_pd* pd, void* address, std::size_t length,
                                              int access) noexcept {
  errno = 0;
  return ::ibv_reg_mr_iova2(pd, address, length, reinterpret_cast<std::uintptr_t>(address),
                            static_cast<unsigned>(access));
}

}  // namespace impl

/// Registers `length` bytes at `address`; `access` is a set of ibv_access_flags.
/// Errors: EINVAL naming the argument, ENOMEM (locked-memory limit, or a port that is not active:
/// the message says both), EFAULT (no such memory, or LOCAL_WRITE on read-only pages).
[[nodiscard]] inline result<unique_mr> reg_mr(ref<ibv_pd> pd, void* address, std::size_t length,
                                              int access) noexcept {
  if (!pd.get()) return impl::null_argument(verb::reg_mr, "pd");
  if (auto valid = impl::check_region(verb::reg_mr, pd->context, address, length, access); !valid)
    return failure(valid.error());
  if (unique_mr mr{impl::reg_mr_unchecked(pd.get(), address, length, access)}) [[likely]]
    return mr;
  error e(verb::reg_mr, errno);
  e.on(pd->context)
      .explain("%zu bytes at %p, access 0x%x", length, address, static_cast<unsigned>(access));
  if (e.code() == ENOMEM) detail::explain_no_memory(e, pd->context);
  return failure(e);
}

/// The same for the memory of a span.
template <class T, std::size_t Extent>
[[nodiscard]] result<unique_mr> reg_mr(ref<ibv_pd> pd, std::span<T, Extent> memory,
                                       int access) noexcept {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
  return reg_mr(pd, static_cast<void*>(memory.data()), memory.size_bytes(), access);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
