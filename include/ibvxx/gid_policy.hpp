// Choosing a GID by a policy, which gives each entry of a port a rank and the reason for it.
#pragma once

#include <infiniband/verbs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ibvxx/gid.hpp>
#include <ibvxx/text.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Whether an entry should belong to a network device.
enum class network_device_need : std::uint8_t { indifferent, preferred, required };

/// Which GIDs of a RoCE port may be used, and which are preferred.
///
/// A lower rank is preferred, equal ranks make no difference, and `refused` excludes the entry.
/// Entries are compared by the rank of their family, then of their type, then by their network
/// device, then by index, lowest first. On InfiniBand, where the subnet manager fills the table,
/// only the index counts.
///
/// The defaults put link-local addresses, which routers do not forward, last; RoCE v2, which is
/// routed, before other types; entries with a network device before those without.
struct gid_policy {
  static constexpr std::uint8_t refused = 255;

  struct type_ranks {
    std::uint8_t roce_v2 = 0, roce_v1 = 1, other = 1;
  };
  struct family_ranks {
    std::uint8_t global = 0, unique_local = 0, ipv4_mapped = 0, link_local = 1;
  };

  type_ranks types{};
  family_ranks families{};
  network_device_need network_device = network_device_need::preferred;
  /// Names of network devices whose entries are excluded. A name that ends in '*' is a prefix:
  /// "docker*".
  std::vector<std::string> excluded_devices{};
};

/// Returns the name of the network device with this index, as if_indextoname does; nullptr if there
/// is none. `name` has room for IF_NAMESIZE characters.
using network_device_namer = char* (*)(unsigned index, char* name);

/// One non-empty entry of the port, with its rank by the policy.
struct gid_candidate {
  static constexpr int unusable = -1;

  ibv_gid_entry entry{};  ///< address vectors take `entry.gid_index`
  int rank = unusable;    ///< 0: the choice; 1, 2, ...: the next ones; unusable: excluded
  /// The name of the network device; empty if the entry has none, or one of another network
  /// namespace.
  fixed_text<IF_NAMESIZE> device{};
  /// For people: "chosen: global RoCE v2 on eth0", "behind index 3 by type: RoCE v1", "refused:
  /// network device docker0 matches docker*".
  fixed_text<88> reason{};
  std::array<std::uint8_t, 3> ranks{};  ///< of its family, type and network device

  [[nodiscard]] bool usable() const noexcept { return rank != unusable; }
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Refuses an invalid policy, naming the field.
[[nodiscard]] inline result<void> check_policy(const gid_policy& policy) noexcept {
  error e(verb::none, EINVAL);
  if (policy.network_device > network_device_need::required)
    return failure(e.explain("gid_policy.network_device is not a network_device_need"));
  for (std::size_t i = 0; i < policy.excluded_devices.size(); ++i)
    if (policy.excluded_devices[i].empty())
      return failure(e.explain("gid_policy.excluded_devices[%zu] is empty", i));
  return {};
}

[[nodiscard]] inline bool matches_device(std::string_view pattern, std::string_view name) noexcept {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

[[nodiscard]] inline std::uint8_t type_rank(const gid_policy& policy, std::uint32_t type) noexcept {
  if (type == IBV_GID_TYPE_ROCE_V2) return policy.types.roce_v2;
  return type == IBV_GID_TYPE_ROCE_V1 ? policy.types.roce_v1 : policy.types.other;
}

[[nodiscard]] inline std::uint8_t family_rank(const gid_policy& policy, gid_family f) noexcept {
  switch (f) {
    case gid_family::link_local:
      return policy.families.link_local;
    case gid_family::unique_local:
      return policy.families.unique_local;
    case gid_family::ipv4_mapped:
      return policy.families.ipv4_mapped;
    case gid_family::global:
      return policy.families.global;
    case gid_family::none:
      break;
  }
  return gid_policy::refused;
}

[[nodiscard]] inline std::uint8_t device_rank(const gid_policy& policy, unsigned ifindex) noexcept {
  if (ifindex != 0 || policy.network_device == network_device_need::indifferent) return 0;
  return policy.network_device == network_device_need::required ? gid_policy::refused : 1;
}

/// The criteria, in the order in which they are compared: the indices of gid_candidate::ranks.
enum gid_criterion : std::uint8_t { by_family, by_type, by_network_device };
inline constexpr const char* gid_criterion_names[] = {"family", "type", "network device"};

/// Appends the candidate's value of one criterion, for example "RoCE v1".
inline void append_value(fixed_text<88>& text, const gid_candidate& candidate,
                         std::size_t criterion) noexcept {
  switch (criterion) {
    case by_family:
      text.append(ibvxx::name(family(candidate.entry.gid)));
      break;
    case by_type:
      text.append(gid_type_name(candidate.entry.gid_type));
      break;
    default:
      if (candidate.entry.ndev_ifindex == 0)
        text.append("none");
      else if (candidate.device.empty())
        text.print("interface %u", candidate.entry.ndev_ifindex);
      else
        text.append(candidate.device);
  }
}

/// Sets everything but `rank`. `reason` is set for an excluded entry only; an empty reason means
/// usable.
inline void assess(gid_candidate& candidate, const gid_policy& policy, bool infiniband,
                   network_device_namer namer) noexcept {
  const detail::errno_guard keep;
  const ibv_gid_entry& entry = candidate.entry;
  if (entry.ndev_ifindex != 0) {
    char found[IF_NAMESIZE] = {};
    if (namer(entry.ndev_ifindex, found))
      candidate.device = fixed_text<IF_NAMESIZE>({found, ::strnlen(found, sizeof found)});
  }
  if (infiniband) return;
  candidate.ranks = {family_rank(policy, family(entry.gid)), type_rank(policy, entry.gid_type),
                     device_rank(policy, entry.ndev_ifindex)};
  for (std::size_t i = 0; i < candidate.ranks.size(); ++i) {
    if (candidate.ranks[i] != gid_policy::refused) continue;
    candidate.reason.print("refused: %s ", gid_criterion_names[i]);
    append_value(candidate.reason, candidate, i);
    return;
  }
  if (candidate.device.empty()) return;
  for (const std::string& pattern : policy.excluded_devices)
    if (matches_device(pattern, candidate.device)) {
      candidate.reason.append("refused: network device ").append(candidate.device);
      candidate.reason.append(" matches ").append(pattern);
      return;
    }
}

[[nodiscard]] inline bool better(const gid_candidate& a, const gid_candidate& b) noexcept {
  if (a.reason.empty() != b.reason.empty()) return a.reason.empty();
  if (a.reason.empty() && a.ranks != b.ranks) return a.ranks < b.ranks;
  return a.entry.gid_index < b.entry.gid_index;
}

/// Sets the reason of a usable candidate; `winner` is null for the winner itself.
inline void explain_rank(gid_candidate& candidate, const gid_candidate* winner,
                         bool infiniband) noexcept {
  fixed_text<88>& reason = candidate.reason;
  if (!winner && infiniband) {
    reason.append("chosen: first entry of an InfiniBand port");
  } else if (!winner) {
    reason.print("chosen: %s %s on ", ibvxx::name(family(candidate.entry.gid)),
                 gid_type_name(candidate.entry.gid_type));
    if (candidate.entry.ndev_ifindex == 0)
      reason.append("no network device");
    else
      append_value(reason, candidate, by_network_device);
  } else {
    reason.print("behind index %u by ", winner->entry.gid_index);
    for (std::size_t i = 0; i < candidate.ranks.size(); ++i) {
      if (candidate.ranks[i] == winner->ranks[i]) continue;
      reason.append(gid_criterion_names[i]).append(": ");
      append_value(reason, candidate, i);
      return;
    }
    reason.append("index");
  }
}

[[nodiscard]] inline bool is_candidate(const ibv_gid_entry& entry, int port) noexcept {
  return entry.port_num == static_cast<std::uint32_t>(port) &&
         family(entry.gid) != gid_family::none;
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Ranks every non-empty entry of `port` among `entries` and writes it to `out`, best first,
/// excluded ones last; returns their number. The first is the choice if it is usable. Two entries
/// with one index (which no real table has) have no particular order. Errors: EINVAL naming the
/// field of the policy, or for an `out` that is too small (entries.size() is always enough). Keeps
/// errno.
[[nodiscard]] inline result<std::size_t> rank_gids(
    std::span<const ibv_gid_entry> entries, int port, bool infiniband, const gid_policy& policy,
    std::span<gid_candidate> out, network_device_namer namer = &::if_indextoname) noexcept {
  if (auto valid = detail::check_policy(policy); !valid) return failure(valid.error());
  std::size_t count = 0;
  for (const ibv_gid_entry& entry : entries)
    if (detail::is_candidate(entry, port)) {
      if (count < out.size()) {
        out[count] = {};
        out[count].entry = entry;
        detail::assess(out[count], policy, infiniband, namer);
      }
      ++count;
    }
  if (count > out.size())
    return failure(error(verb::none, EINVAL)
                       .explain("room for %zu candidates, %zu needed", out.size(), count));
  const auto ranked = out.first(count);
  std::sort(ranked.begin(), ranked.end(), detail::better);
  for (std::size_t i = 0; i < count && ranked[i].reason.empty(); ++i) {
    ranked[i].rank = static_cast<int>(i);
    detail::explain_rank(ranked[i], i == 0 ? nullptr : &ranked[0], infiniband);
  }
  return count;
}

/// The same, as a vector. ENOMEM if it cannot be allocated.
[[nodiscard]] inline result<std::vector<gid_candidate>> rank_gids(
    std::span<const ibv_gid_entry> entries, int port, bool infiniband,
    const gid_policy& policy = {}, network_device_namer namer = &::if_indextoname) noexcept {
  return detail::catching_bad_alloc([&]() -> result<std::vector<gid_candidate>> {
    const auto wanted = std::count_if(entries.begin(), entries.end(), [port](const auto& entry) {
      return detail::is_candidate(entry, port);
    });
    std::vector<gid_candidate> candidates(static_cast<std::size_t>(wanted));
    auto count = rank_gids(entries, port, infiniband, policy, candidates, namer);
    if (!count) return failure(count.error());
    return candidates;
  });
}

/// Returns only the choice: the first entry that rank_gids writes. Allocates nothing. ENODATA if
/// the policy excludes every entry of the port; the message has their number and the reason of the
/// first.
[[nodiscard]] inline result<gid_candidate> choose_gid(
    std::span<const ibv_gid_entry> entries, int port, bool infiniband,
    const gid_policy& policy = {}, network_device_namer namer = &::if_indextoname) noexcept {
  if (auto valid = detail::check_policy(policy); !valid) return failure(valid.error());
  gid_candidate best;
  std::size_t looked_at = 0;
  for (const ibv_gid_entry& entry : entries) {
    if (!detail::is_candidate(entry, port)) continue;
    gid_candidate candidate;
    candidate.entry = entry;
    detail::assess(candidate, policy, infiniband, namer);
    if (looked_at++ == 0 || detail::better(candidate, best)) best = candidate;
  }
  if (looked_at != 0 && best.reason.empty()) {
    best.rank = 0;
    detail::explain_rank(best, nullptr, infiniband);
    return best;
  }
  error e(verb::query_gid_table, ENODATA);
  e.explain("no usable GID: ");
  if (looked_at == 0)
    e.explain("port %d has no entry", port);
  else
    e.explain("all %zu of port %d refused; index %u %s", looked_at, port, best.entry.gid_index,
              best.reason.c_str());
  return failure(e);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
