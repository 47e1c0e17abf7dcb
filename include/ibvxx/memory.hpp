// Memory regions: registering, changing, advising, importing.
#pragma once

#include <infiniband/verbs.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/checks.hpp>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/handle.hpp>
#include <span>
#include <type_traits>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct mr_deleter : object_deleter<mr_deleter, ibv_mr, verb::dereg_mr> {
  static constexpr const char* users = "a memory window";
  [[nodiscard]] static int destroy(ibv_mr* mr) noexcept { return ::ibv_dereg_mr(mr); }
};
/// A registered memory region. It pins the memory and does not own it: keep the memory alive until
/// the region is deregistered. Posted work requests do not keep a region: deregistering it while
/// they are in progress makes them fail.
using unique_mr = unique_handle<ibv_mr*, mr_deleter>;

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// The access bits that this toolkit accepts: all that verbs.h of rdma-core 44 defines, the two
/// FLUSH bits added later, and the range that providers may ignore.
inline constexpr unsigned known_access = 0x3ffU | IBV_ACCESS_OPTIONAL_RANGE;

/// Refuses invalid combinations of access bits (manual page of ibv_reg_mr).
[[nodiscard]] inline result<void> check_access(verb call, const ibv_context* context,
                                               int access) noexcept {
  const auto bits = static_cast<unsigned>(access);
  constexpr unsigned remote_writers = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((bits & ~known_access) != 0)
    return failure(refusal(call, context)
                       .explain("access 0x%x has unknown bits 0x%x", bits, bits & ~known_access));
  if ((bits & remote_writers) != 0 && (bits & IBV_ACCESS_LOCAL_WRITE) == 0)
    return failure(
        refusal(call, context)
            .explain("access 0x%x: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE", bits));
  return {};
}

/// Refuses a length that is 0, or that wraps around 64 bits from `begin` on.
[[nodiscard]] inline result<void> check_extent(verb call, const ibv_context* context,
                                               const char* begin_name, std::uint64_t begin,
                                               std::size_t length) noexcept {
  if (length == 0)
    return failure(refusal(call, context).explain("length is 0: at least 1 byte is needed"));
  if (begin + (length - 1) < begin)
    return failure(refusal(call, context)
                       .explain("length %zu from %s 0x%llx wraps around 64 bits", length,
                                begin_name, static_cast<unsigned long long>(begin)));
  return {};
}

/// Refuses an invalid region before the call (the kernel itself returns EINVAL, or EFAULT for a
/// null address). A null address is valid for one region only: the whole address space, on demand.
[[nodiscard]] inline result<void> check_region(verb call, ibv_context* context, const void* address,
                                               std::size_t length, int access) noexcept {
  const auto bits = static_cast<unsigned>(access);
  const bool everything = length == SIZE_MAX && (bits & IBV_ACCESS_ON_DEMAND) != 0;
  if (!address && !everything) return null_argument(call, context, "address");
  if (length == 0)
    return failure(refusal(call, context).explain("length is 0: at least 1 byte is needed"));
  if (reinterpret_cast<std::uintptr_t>(address) + length < length)
    return failure(
        refusal(call, context)
            .explain("length %zu at %p wraps around the address space", length, address));
  return check_access(call, context, access);
}

/// Calls ibv_reg_mr with errno cleared. The macro of that name chooses between two functions by
/// constant folding; for a value that is not a constant it always calls ibv_reg_mr_iova2, which
/// knows the optional access bits.
[[nodiscard]] inline ibv_mr* reg_mr_unchecked(ibv_pd* pd, void* address, std::size_t length,
                                              int access) noexcept {
  errno = 0;
  return ::ibv_reg_mr_iova2(pd, address, length, reinterpret_cast<std::uintptr_t>(address),
                            static_cast<unsigned>(access));
}

/// Explains EINVAL of a registration: the two addresses that must have the same offset within a
/// page (kernel: ib_uverbs_reg_mr; manual page, for a DMA buffer).
[[gnu::cold]] inline void explain_page_offset(error& e, std::uint64_t iova, std::uint64_t begin,
                                              const char* begin_name) noexcept {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (e.code() == EINVAL && ((iova ^ begin) & (page - 1)) != 0)
    e.explain("; iova and %s differ within the page", begin_name);
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Registers `length` bytes at `address`; `access` is a set of ibv_access_flags. Errors: EINVAL
/// naming the argument, ENOMEM (locked-memory limit, or a port that is not active: the message has
/// both), EFAULT (no such memory, or LOCAL_WRITE on read-only pages).
[[nodiscard]] inline result<unique_mr> reg_mr(ref<ibv_pd> pd, void* address, std::size_t length,
                                              int access) noexcept {
  if (!pd.get()) return detail::null_argument(verb::reg_mr, "pd");
  if (auto valid = detail::check_region(verb::reg_mr, pd->context, address, length, access); !valid)
    return failure(valid.error());
  if (unique_mr mr{detail::reg_mr_unchecked(pd.get(), address, length, access)}) [[likely]]
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

/// The same with a chosen start address: work requests name the first byte of the region as `iova`,
/// which must have the same offset within a page as `address`.
[[nodiscard]] inline result<unique_mr> reg_mr_iova(ref<ibv_pd> pd, void* address,
                                                   std::size_t length, std::uint64_t iova,
                                                   int access) noexcept {
  constexpr verb call = verb::reg_mr_iova;
  if (!pd.get()) return detail::null_argument(call, "pd");
  if (auto valid = detail::check_region(call, pd->context, address, length, access); !valid)
    return failure(valid.error());
  if (auto valid = detail::check_extent(call, pd->context, "iova", iova, length); !valid)
    return failure(valid.error());
  auto mr = detail::obtain<unique_mr>(call, pd->context, [&]() noexcept {
    // As in reg_mr_unchecked: the function that the macro ibv_reg_mr_iova calls for a value that is
    // not a constant.
    return ::ibv_reg_mr_iova2(pd.get(), address, length, iova, static_cast<unsigned>(access));
  });
  if (!mr) {
    error& e = mr.error();
    e.explain("%zu bytes at %p, iova 0x%llx, access 0x%x", length, address,
              static_cast<unsigned long long>(iova), static_cast<unsigned>(access));
    detail::explain_page_offset(e, iova, reinterpret_cast<std::uintptr_t>(address), "address");
    if (e.code() == ENOMEM) detail::explain_no_memory(e, pd->context);
  }
  return mr;
}

/// Allocates a region that reads as zeros and discards what is written to it, for the unused parts
/// of a scatter list. It has an lkey only.
[[nodiscard]] inline result<unique_mr> alloc_null_mr(ref<ibv_pd> pd) noexcept {
  if (!pd.get()) return detail::null_argument(verb::alloc_null_mr, "pd");
  return detail::obtain<unique_mr>(verb::alloc_null_mr, pd->context,
                                   [&]() noexcept { return ::ibv_alloc_null_mr(pd.get()); });
}

struct imported_mr_deleter : object_deleter<imported_mr_deleter, ibv_mr, verb::unimport_mr> {
  static constexpr const char* users = "a memory window";
  [[nodiscard]] static int destroy(ibv_mr* mr) noexcept {
    ::ibv_unimport_mr(mr);
    return 0;
  }
};
/// A memory region of another context. The owner unimports it, which releases this process's handle
/// only, and never deregisters it. Its `addr` is null.
using unique_imported_mr = unique_handle<ibv_mr*, imported_mr_deleter>;

/// Imports the memory region with this kernel handle (`ibv_mr::handle` of the original), in a
/// protection domain from import_pd.
[[nodiscard]] inline result<unique_imported_mr> import_mr(ref<ibv_pd> pd,
                                                          std::uint32_t mr_handle) noexcept {
  if (!pd.get()) return detail::null_argument(verb::import_mr, "pd");
  auto mr = detail::obtain<unique_imported_mr>(verb::import_mr, pd->context, [&]() noexcept {
    return ::ibv_import_mr(pd.get(), mr_handle);
  });
  if (!mr) mr.error().explain("mr_handle %u", mr_handle);
  return mr;
}

/// The state of a region after rereg_mr.
enum class rereg_mr_left : std::uint8_t {
  new_region,  ///< as requested; the old pages may still be marked for fork
  old_region,  ///< unchanged
  unusable,    ///< neither: it must only be deregistered
};

/// Changes a region in place: `flags` is a set of ibv_rereg_mr_flags that selects which of
/// translation (`address`, `length`), `pd` and `access` are new; the others are ignored, but access
/// must then be 0. No work request may use the region meanwhile. The owner owns the region in every
/// case.
///
/// `left`, if given, is set to the state of the region, in success and in failure; a failure's
/// message has it too. The errors of reg_mr; EOPNOTSUPP from providers without the call, and even
/// then libibverbs reports the region unusable (rdma-core 44: IBV_REREG_MR_ERR_CMD).
[[nodiscard]] inline result<void> rereg_mr(ref<ibv_mr> mr, int flags, ibv_pd* pd, void* address,
                                           std::size_t length, int access,
                                           rereg_mr_left* left = nullptr) noexcept {
  constexpr verb call = verb::rereg_mr;
  if (left) *left = rereg_mr_left::old_region;
  if (!mr.get()) return detail::null_argument(call, "mr");
  const auto bits = static_cast<unsigned>(flags);
  if (bits == 0 || (bits & ~static_cast<unsigned>(IBV_REREG_MR_FLAGS_SUPPORTED)) != 0)
    return failure(
        detail::refusal(call, mr->context)
            .explain("flags 0x%x is not a set out of 0x%x", bits, IBV_REREG_MR_FLAGS_SUPPORTED));
  if ((bits & IBV_REREG_MR_CHANGE_PD) != 0 && !pd)
    return detail::null_argument(call, mr->context, "pd");
  if ((bits & IBV_REREG_MR_CHANGE_ACCESS) == 0 && access != 0)
    return failure(
        detail::refusal(call, mr->context)
            .explain("access 0x%x without CHANGE_ACCESS in flags", static_cast<unsigned>(access)));
  if (auto valid = detail::check_access(call, mr->context, access); !valid) return valid;
  if ((bits & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    if (auto valid = detail::check_region(call, mr->context, address, length, 0); !valid)
      return valid;
  }

  errno = 0;
  const int answer = ::ibv_rereg_mr(mr.get(), flags, pd, address, length, access);
  if (answer == 0) [[likely]] {
    if (left) *left = rereg_mr_left::new_region;
    return {};
  }
  error e(call, errno);
  e.on(mr->context);
  rereg_mr_left now = rereg_mr_left::unusable;
  switch (answer) {
    case IBV_REREG_MR_ERR_INPUT:
      now = rereg_mr_left::old_region;
      e.explain("refused by libibverbs; the old region is valid");
      break;
    case IBV_REREG_MR_ERR_DONT_FORK_NEW:
      now = rereg_mr_left::old_region;
      e.explain("marking the new pages for fork failed; the old region is valid");
      break;
    case IBV_REREG_MR_ERR_DO_FORK_OLD:
      now = rereg_mr_left::new_region;
      e.explain("unmarking the old pages for fork failed; the new region is valid");
      break;
    case IBV_REREG_MR_ERR_CMD:
      e.explain("the region is unusable: deregister it");
      break;
    case IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW:
      e.explain("the region is unusable, its pages stay marked for fork: deregister it");
      break;
    default:
      e.explain("return value %d; the region is unusable: deregister it", answer);
  }
  if (left) *left = now;
  return failure(e);
}

/// Advises the kernel about ranges of on-demand regions (IBV_ACCESS_ON_DEMAND), each identified by
/// its lkey. IBV_ADVISE_MR_FLAG_FLUSH waits until the advice is carried out. EOPNOTSUPP from
/// providers without the call; ENOTSUP for an advice that they do not support.
[[nodiscard]] inline result<void> advise_mr(ref<ibv_pd> pd, ibv_advise_mr_advice advice,
                                            std::uint32_t flags,
                                            std::span<ibv_sge> ranges) noexcept {
  if (!pd.get()) return detail::null_argument(verb::advise_mr, "pd");
  if (auto valid = detail::check_count(verb::advise_mr, pd->context, "ranges", ranges.size());
      !valid)
    return valid;
  auto done = detail::check(verb::advise_mr,
                            ::ibv_advise_mr(pd.get(), advice, flags, ranges.data(),
                                            static_cast<std::uint32_t>(ranges.size())),
                            pd->context);
  if (!done)
    done.error().explain("advice %d, flags 0x%x, %zu range(s)", static_cast<int>(advice), flags,
                         ranges.size());
  return done;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
