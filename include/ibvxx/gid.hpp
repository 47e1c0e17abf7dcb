// GIDs: reading a port's table, and classifying its entries. Choosing one: gid_policy.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ibvxx/device.hpp>
#include <span>
#include <vector>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// One slot of a GID table. An empty slot is ENODATA (kernel: no entry at that index).
[[nodiscard]] inline result<ibv_gid_entry> query_gid_ex(ref<ibv_context> context, int port,
                                                        int index) noexcept {
  if (!context.get()) return detail::null_argument(verb::query_gid_ex, "context");
  error e(verb::query_gid_ex, EINVAL);
  e.on(context.get()).explain("port %d, index %d", port, index);
  if (port < 1 || index < 0) return failure(e);
  ibv_gid_entry entry{};
  const int code = ::ibv_query_gid_ex(context.get(), static_cast<std::uint32_t>(port),
                                      static_cast<std::uint32_t>(index), &entry, 0);
  if (code == 0) [[likely]]
    return entry;
  return failure(
      error(verb::query_gid_ex, code).on(context.get()).explain("port %d, index %d", port, index));
}

/// Fills `entries` with the non-empty GIDs of every port of the device and returns their number.
/// EINVAL if `entries` is too small: the sum of the ports' gid_tbl_len is always enough.
[[nodiscard]] inline result<std::size_t> query_gid_table(
    ref<ibv_context> context, std::span<ibv_gid_entry> entries) noexcept {
  if (!context.get()) return detail::null_argument(verb::query_gid_table, "context");
  const ssize_t count = ::ibv_query_gid_table(context.get(), entries.data(), entries.size(), 0);
  if (count >= 0) [[likely]]
    return static_cast<std::size_t>(count);
  return failure(error(verb::query_gid_table, static_cast<int>(count))
                     .on(context.get())
                     .explain("room for %zu", entries.size()));
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// The non-empty GIDs of every port; their tables have `slots` slots in all. Allocates. Without a
/// slot the result is empty, not an error: mlx5 representors have none (Linux,
/// mlx5_ib_rep_query_port), and the kernel refuses an empty array (EINVAL,
/// UVERBS_METHOD_QUERY_GID_TABLE).
[[nodiscard]] inline result<std::vector<ibv_gid_entry>> every_gid(ref<ibv_context> context,
                                                                  std::size_t slots) {
  std::vector<ibv_gid_entry> entries(slots);
  if (slots == 0) return entries;
  const auto count = query_gid_table(context, entries);
  if (!count) return failure(count.error());
  entries.resize(*count);
  return entries;
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// The GID in one slot, without its type. An empty slot is ENODATA: ibv_query_gid itself returns 0
/// for it, with a GID of zeros and a stale errno (rdma-core 44), so the value decides.
[[nodiscard]] inline result<ibv_gid> query_gid(ref<ibv_context> context, int port,
                                               int index) noexcept {
  if (!context.get()) return detail::null_argument(verb::query_gid, "context");
  if (auto valid = detail::check_port(verb::query_gid, context.get(), port); !valid)
    return failure(valid.error());
  if (index < 0)
    return failure(
        detail::refusal(verb::query_gid, context.get()).explain("index %d is negative", index));
  static constexpr std::uint8_t zero[16] = {};
  ibv_gid gid{};
  errno = 0;
  int code = 0;
  if (::ibv_query_gid(context.get(), static_cast<std::uint8_t>(port), index, &gid) != 0)
    code = errno;
  else if (std::memcmp(gid.raw, zero, sizeof zero) != 0) [[likely]]
    return gid;
  else
    code = ENODATA;
  return failure(
      error(verb::query_gid, code)
          .on(context.get())
          .explain("port %d, index %d%s", port, index, code == ENODATA ? " is an empty slot" : ""));
}

/// The kind of address that a GID holds.
enum class gid_family : std::uint8_t {
  none,          ///< all zero: an empty slot
  link_local,    ///< fe80::/10
  unique_local,  ///< fc00::/7
  ipv4_mapped,   ///< ::ffff:0:0/96
  global,        ///< anything else
};

[[nodiscard]] inline gid_family family(const ibv_gid& gid) noexcept {
  static constexpr std::uint8_t zero[16] = {};
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(gid.raw, zero, sizeof zero) == 0) return gid_family::none;
  if (std::memcmp(gid.raw, mapped, sizeof mapped) == 0) return gid_family::ipv4_mapped;
  if (gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80) return gid_family::link_local;
  if ((gid.raw[0] & 0xfe) == 0xfc) return gid_family::unique_local;
  return gid_family::global;
}

[[nodiscard]] constexpr const char* name(gid_family f) noexcept {
  switch (f) {
    case gid_family::none:
      return "empty";
    case gid_family::link_local:
      return "link-local";
    case gid_family::unique_local:
      return "unique-local";
    case gid_family::ipv4_mapped:
      return "IPv4-mapped";
    case gid_family::global:
      return "global";
  }
  return "?";
}

/// The name of an ibv_gid_type.
[[nodiscard]] constexpr const char* gid_type_name(std::uint32_t type) noexcept {
  return type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1" : "IB";
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
