// Memory regions on DMA buffers: another device's memory, shared as a file descriptor.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/fd.hpp>
#include <ibvxx/memory.hpp>
#include <utility>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Registers `length` bytes from `offset` of the DMA buffer behind `fd`; work requests name the
/// first of them as `iova`, which must have the same offset within a page as `offset`. The
/// descriptor stays the caller's, who may close it as soon as this returns: the region holds a
/// reference to the buffer (kernel: dma_buf_get in ib_umem_dmabuf_get). EOPNOTSUPP from providers
/// without DMA buffers.
[[nodiscard]] inline result<unique_mr> reg_dmabuf_mr(ref<ibv_pd> pd, std::uint64_t offset,
                                                     std::size_t length, std::uint64_t iova, int fd,
                                                     int access) noexcept {
  constexpr verb call = verb::reg_dmabuf_mr;
  if (!pd.get()) return detail::null_argument(call, "pd");
  if (fd < 0) return failure(detail::refusal(call, pd->context).explain("fd %d is negative", fd));
  if (auto valid = detail::check_extent(call, pd->context, "offset", offset, length); !valid)
    return failure(valid.error());
  if (auto valid = detail::check_extent(call, pd->context, "iova", iova, length); !valid)
    return failure(valid.error());
  if (auto valid = detail::check_access(call, pd->context, access); !valid)
    return failure(valid.error());
  auto mr = detail::obtain<unique_mr>(call, pd->context, [&]() noexcept {
    return ::ibv_reg_dmabuf_mr(pd.get(), offset, length, iova, fd, access);
  });
  if (!mr) {
    error& e = mr.error();
    e.explain("%zu bytes at offset 0x%llx of fd %d, access 0x%x", length,
              static_cast<unsigned long long>(offset), fd, static_cast<unsigned>(access));
    detail::explain_page_offset(e, iova, offset, "offset");
    if (e.code() == ENOMEM) detail::explain_no_memory(e, pd->context);
  }
  return mr;
}

/// The same, but takes the descriptor: it is closed exactly once before this returns, whether the
/// registration succeeds, fails or is refused, and `fd` is left empty. A close that fails is passed
/// to the teardown handler.
[[nodiscard]] inline result<unique_mr> reg_dmabuf_mr(ref<ibv_pd> pd, std::uint64_t offset,
                                                     std::size_t length, std::uint64_t iova,
                                                     unique_fd&& fd, int access) noexcept {
  const unique_fd closed_here(std::move(fd));
  return reg_dmabuf_mr(pd, offset, length, iova, closed_here.get(), access);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
