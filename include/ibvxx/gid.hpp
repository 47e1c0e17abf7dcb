// GIDs: reading a port's table, and choosing the entry to talk from.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ibvxx/device.hpp>
#include <span>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// One slot of a GID table. An empty slot is ENODATA (kernel: no entry at that index).
[[nodiscard]] inline result<ibv_gid_entry> query_gid_ex(ref<ibv_context> context, int port,
                                                        int index) noexcept {
  if (!context.get()) return impl::null_argument(verb::query_gid_ex, "context");
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

/// Fills `entries` with the non-empty GIDs of every port of the device and returns how many there
/// were. Too little room is EINVAL: a table never has more entries than the sum of its ports'
/// gid_tbl_len.
[[nodiscard]] inline result<std::size_t> query_gid_table(
    ref<ibv_context> context, std::span<ibv_gid_entry> entries) noexcept {
  if (!context.get()) return impl::null_argument(verb::query_gid_table, "context");
  const ssize_t count = ::ibv_query_gid_table(context.get(), entries.data(), entries.size(), 0);
  if (count >= 0) [[likely]]
    return static_cast<std::size_t>(count);
  return failure(error(verb::query_gid_table, static_cast<int>(count))
                     .on(context.get())
                     .explain("room for %zu", entries.size()));
}

/// The GID in one slot, and nothing about it. An empty slot is ENODATA: ibv_query_gid itself
/// answers 0 there, with a GID of zeros and a stale errno (rdma-core 44), so the value decides.
[[nodiscard]] inline result<ibv_gid> query_gid(ref<ibv_context> context, int port,
                                               int index) noexcept {
  if (!context.get()) return impl::null_argument(verb::query_gid, "context");
  if (auto valid = impl::check_port(verb::query_gid, context.get(), port); !valid)
    return failure(valid.error());
  if (index < 0)
    return failure(
        impl::refusal(verb::query_gid, context.get()).explain("index %d is negative", index));
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

/// What kind of address a GID holds.
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

/// A GID that was chosen, and why.
struct gid_choice {
  ibv_gid_entry entry{};    ///< `entry.gid_index` and `entry.port_num` are the numbers that address
                            ///< vectors take
  const char* reason = "";  ///< for humans; static storage
};

/// How good an entry is to talk from: 0 is best. RoCE v2 is routed and preferred to v1; an entry
/// that belongs to a network device to one that does not; link-local addresses, which reach no
/// further than the link, come last whatever else holds.
[[nodiscard]] inline int gid_rank(const ibv_gid_entry& entry) noexcept {
  int rank = 0;
  if (family(entry.gid) == gid_family::link_local) rank += 4;
  if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) rank += 2;
  if (entry.ndev_ifindex == 0) rank += 1;
  return rank;
}

[[nodiscard]] constexpr const char* gid_reason(int rank) noexcept {
  constexpr const char* reasons[] = {
      "RoCE v2 on a network device",
      "RoCE v2 without a network device",
      "on a network device; there is no RoCE v2 entry",
      "without a network device; there is no RoCE v2 entry",
      "RoCE v2 on a network device, but link-local: there is no other",
      "RoCE v2, but link-local and without a network device: there is no other",
      "on a network device, but link-local: there is no other",
      "link-local and without a network device: there is no other",
  };
  return reasons[rank & 7];
}

/// Chooses the best entry of `port`; among equals the lowest index. On InfiniBand, where the table
/// is the subnet manager's, index order decides. Returns false where the port has no entry but
/// empty ones.
[[nodiscard]] inline bool choose_gid(std::span<const ibv_gid_entry> entries, int port,
                                     bool infiniband, gid_choice& chosen) noexcept {
  const ibv_gid_entry* best = nullptr;
  const auto worse = [&](const ibv_gid_entry& a, const ibv_gid_entry& b) {
    const int rank_a = infiniband ? 0 : gid_rank(a), rank_b = infiniband ? 0 : gid_rank(b);
    return rank_a != rank_b ? rank_a > rank_b : a.gid_index > b.gid_index;
  };
  for (const ibv_gid_entry& entry : entries) {
    if (entry.port_num != static_cast<std::uint32_t>(port) || family(entry.gid) == gid_family::none)
      continue;
    if (!best || worse(*best, entry)) best = &entry;
  }
  if (!best) return false;
  chosen = {*best, infiniband ? "first entry of an InfiniBand port" : gid_reason(gid_rank(*best))};
  return true;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
