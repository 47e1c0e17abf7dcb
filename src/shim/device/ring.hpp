// A queue that allocates only when it holds more elements than ever before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace ibvxx::shim {

/// First in, first out. A slot is reused with its old content, so that its members keep their
/// capacity. Costs: append() is constant, amortised; pop(), clear() and truncate() are constant;
/// remove_if() is linear.
template <class T>
class ring {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  /// The new last slot, still holding what it held when it was used last.
  [[nodiscard]] T& append() {
    if (count_ == slots_.size()) grow();
    return slots_[at(count_++)];
  }
  [[nodiscard]] T& front() noexcept { return slots_[first_]; }
  [[nodiscard]] T& operator[](std::size_t place) noexcept { return slots_[at(place)]; }
  void pop() noexcept {
    first_ = at(1);
    --count_;
  }
  void clear() noexcept { first_ = count_ = 0; }
  /// Keeps the first `kept` elements only.
  void truncate(std::size_t kept) noexcept { count_ = std::min(count_, kept); }

  /// Removes the elements for which `unwanted` returns true, and keeps the order of the rest.
  template <class Unwanted>
  void remove_if(Unwanted&& unwanted) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (unwanted(slots_[at(i)])) continue;
      if (kept != i) std::swap(slots_[at(kept)], slots_[at(i)]);
      ++kept;
    }
    count_ = kept;
  }

 private:
  [[nodiscard]] std::size_t at(std::size_t place) const noexcept {
    const std::size_t i = first_ + place;
    return i < slots_.size() ? i : i - slots_.size();
  }
  void grow() {
    std::rotate(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(first_), slots_.end());
    first_ = 0;
    slots_.resize(slots_.empty() ? 4 : slots_.size() * 2);
  }

  std::vector<T> slots_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace ibvxx::shim
