// A set of addresses, as ranges that do not touch. Header only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace ibvxx::shim {

/// Costs: add() is logarithmic, amortised; overlaps() is logarithmic, and constant for an empty
/// set. Memory is linear in the ranges that do not touch.
class range_set {
 public:
  /// Adds [begin, end).
  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    auto next = ranges_.upper_bound(begin);
    if (next != ranges_.begin() && std::prev(next)->second >= begin) --next;
    for (; next != ranges_.end() && next->first <= end; next = ranges_.erase(next)) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
    }
    ranges_.emplace_hint(next, begin, end);
  }
  /// Whether an address of [begin, end) is in the set.
  [[nodiscard]] bool overlaps(std::uint64_t begin, std::uint64_t end) const noexcept {
    if (ranges_.empty() || begin >= end) [[likely]]
      return false;
    const auto next = ranges_.lower_bound(end);
    return next != ranges_.begin() && std::prev(next)->second > begin;
  }
  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  void clear() noexcept { ranges_.clear(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_{};  // begin to end
};

}  // namespace ibvxx::shim
