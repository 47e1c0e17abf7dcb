// Device memory: memory on the adapter itself.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/device.hpp>
#include <ibvxx/memory.hpp>
#include <span>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct dm_deleter : object_deleter<dm_deleter, ibv_dm, verb::free_dm> {
  static constexpr const char* users = "a memory region";
  [[nodiscard]] static int destroy(ibv_dm* dm) noexcept { return ::ibv_free_dm(dm); }
};
/// Device memory. Deregister the regions made on it first: EBUSY otherwise.
using unique_dm = unique_handle<ibv_dm*, dm_deleter>;

struct imported_dm_deleter : object_deleter<imported_dm_deleter, ibv_dm, verb::unimport_dm> {
  static constexpr const char* users = "a memory region";
  [[nodiscard]] static int destroy(ibv_dm* dm) noexcept {
    ::ibv_unimport_dm(dm);
    return 0;
  }
};
/// Device memory of another context. The owner unimports it, which releases this process's handle
/// only, and never frees the memory.
using unique_imported_dm = unique_handle<ibv_dm*, imported_dm_deleter>;

/// Allocates device memory: `attributes` holds the length in bytes and the base-2 logarithm of the
/// alignment. ENOMEM, or an errno of the provider, if no such block is free; the limit is
/// ibv_device_attr_ex::max_dm_size. EOPNOTSUPP from a device without device memory.
[[nodiscard]] inline result<unique_dm> alloc_dm(ref<ibv_context> context,
                                                ibv_alloc_dm_attr attributes) noexcept {
  constexpr verb call = verb::alloc_dm;
  if (!context.get()) return detail::null_argument(call, "context");
  if (attributes.length == 0)
    return failure(detail::refusal(call, context.get())
                       .explain("attributes.length is 0: at least 1 byte is needed"));
  auto dm = detail::obtain<unique_dm>(
      call, context.get(), [&]() noexcept { return ::ibv_alloc_dm(context.get(), &attributes); });
  if (!dm && dm.error().code() != EOPNOTSUPP) {
    const detail::errno_guard keep;
    ibv_device_attr_ex device{};
    const bool known = ::ibv_query_device_ex(context.get(), nullptr, &device) == 0;
    if (!known ||
        !detail::explain_excess(dm.error(), {{"length", attributes.length, device.max_dm_size}}))
      dm.error().explain("length %zu, log_align_req %u", attributes.length,
                         attributes.log_align_req);
  }
  return dm;
}

/// Imports the device memory with this kernel handle (`ibv_dm::handle` of the original), on a
/// context from import_device.
[[nodiscard]] inline result<unique_imported_dm> import_dm(ref<ibv_context> context,
                                                          std::uint32_t dm_handle) noexcept {
  if (!context.get()) return detail::null_argument(verb::import_dm, "context");
  auto dm = detail::obtain<unique_imported_dm>(verb::import_dm, context.get(), [&]() noexcept {
    return ::ibv_import_dm(context.get(), dm_handle);
  });
  if (!dm) dm.error().explain("dm_handle %u", dm_handle);
  return dm;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

[[nodiscard]] inline result<void> check_dm_copy(verb call, const ibv_dm* dm, std::uint64_t offset,
                                                const void* host, std::size_t length) noexcept {
  if (!host && length != 0) return null_argument(call, dm->context, "host");
  // If the sum wraps, mlx5's own check passes and the copy runs past the end of the memory
  // (rdma-core 44).
  if (length != 0 && offset + (length - 1) < offset)
    return failure(refusal(call, dm->context)
                       .explain("offset 0x%llx and length %zu wrap around 64 bits",
                                static_cast<unsigned long long>(offset), length));
  return {};
}

[[nodiscard]] inline result<void> dm_copied(verb call, int code, const ibv_dm* dm,
                                            std::uint64_t offset, std::size_t length) noexcept {
  auto done = check(call, code, dm->context);
  if (!done)
    done.error().explain("offset 0x%llx, length %zu", static_cast<unsigned long long>(offset),
                         length);
  return done;
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Copies `length` bytes at `host` into device memory, from `offset` on. mlx5 requires offset and
/// length to be multiples of 4 (EINVAL) and inside the memory (EFAULT).
[[nodiscard]] inline result<void> memcpy_to_dm(ref<ibv_dm> dm, std::uint64_t offset,
                                               const void* host, std::size_t length) noexcept {
  constexpr verb call = verb::memcpy_to_dm;
  if (!dm.get()) return detail::null_argument(call, "dm");
  if (auto valid = detail::check_dm_copy(call, dm.get(), offset, host, length); !valid)
    return valid;
  const int code =
      dm->memcpy_to_dm ? ::ibv_memcpy_to_dm(dm.get(), offset, host, length) : EOPNOTSUPP;
  return detail::dm_copied(call, code, dm.get(), offset, length);
}

/// The same for a span.
[[nodiscard]] inline result<void> memcpy_to_dm(ref<ibv_dm> dm, std::uint64_t offset,
                                               std::span<const std::byte> bytes) noexcept {
  return memcpy_to_dm(dm, offset, bytes.data(), bytes.size());
}

/// Copies `length` bytes of device memory, from `offset` on, to `host`; otherwise as memcpy_to_dm.
[[nodiscard]] inline result<void> memcpy_from_dm(void* host, ref<ibv_dm> dm, std::uint64_t offset,
                                                 std::size_t length) noexcept {
  constexpr verb call = verb::memcpy_from_dm;
  if (!dm.get()) return detail::null_argument(call, "dm");
  if (auto valid = detail::check_dm_copy(call, dm.get(), offset, host, length); !valid)
    return valid;
  const int code =
      dm->memcpy_from_dm ? ::ibv_memcpy_from_dm(host, dm.get(), offset, length) : EOPNOTSUPP;
  return detail::dm_copied(call, code, dm.get(), offset, length);
}

/// The same for a span.
[[nodiscard]] inline result<void> memcpy_from_dm(std::span<std::byte> bytes, ref<ibv_dm> dm,
                                                 std::uint64_t offset) noexcept {
  return memcpy_from_dm(bytes.data(), dm, offset, bytes.size());
}

/// Registers `length` bytes of device memory from `offset` on. Such a region is zero-based: work
/// requests address it from 0, and `access` must contain IBV_ACCESS_ZERO_BASED.
[[nodiscard]] inline result<unique_mr> reg_dm_mr(ref<ibv_pd> pd, ref<ibv_dm> dm,
                                                 std::uint64_t offset, std::size_t length,
                                                 int access) noexcept {
  constexpr verb call = verb::reg_dm_mr;
  if (!pd.get()) return detail::null_argument(call, "pd");
  if (!dm.get()) return detail::null_argument(call, pd->context, "dm");
  if (auto valid = detail::check_extent(call, pd->context, "offset", offset, length); !valid)
    return failure(valid.error());
  if (auto valid = detail::check_access(call, pd->context, access); !valid)
    return failure(valid.error());
  const auto bits = static_cast<unsigned>(access);
  if ((bits & IBV_ACCESS_ZERO_BASED) == 0)
    return failure(
        detail::refusal(call, pd->context).explain("access 0x%x lacks ZERO_BASED", bits));
  auto mr = detail::obtain<unique_mr>(call, pd->context, [&]() noexcept {
    return ::ibv_reg_dm_mr(pd.get(), dm.get(), offset, length, bits);
  });
  if (!mr)
    mr.error().explain("%zu bytes at offset 0x%llx, access 0x%x", length,
                       static_cast<unsigned long long>(offset), bits);
  return mr;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
