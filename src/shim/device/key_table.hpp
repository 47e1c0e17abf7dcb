// Tables of a device: regions and windows by key, queue pairs and SRQs by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ibvxx::shim {

struct sim_mr;
struct sim_mw;
struct sim_qp;
struct sim_srq;

/// Allocates numbers cyclically, as the kernel does: a number that was just released is the last to
/// be used again. Costs: find() and release() are constant, take() is linear in the numbers in use
/// at worst.
template <class Entry>
class cyclic_table {
 public:
  /// Numbers are first..last.
  cyclic_table(std::uint32_t first, std::uint32_t last) noexcept
      : first_(first), last_(last), next_(first) {}

  /// A free number, taken by `entry`; 0 when there is none.
  [[nodiscard]] std::uint32_t take(const Entry& entry) {
    const std::uint32_t size = last_ - first_ + 1;
    for (std::uint32_t tried = 0; tried < size; ++tried) {
      const std::uint32_t number = next_;
      next_ = next_ == last_ ? first_ : next_ + 1;
      const std::size_t slot = number - first_;
      if (slot >= slots_.size()) slots_.resize(slot + 1);
      if (slots_[slot]) continue;
      slots_[slot] = entry;
      return number;
    }
    return 0;
  }
  void release(std::uint32_t number) noexcept {
    if (Entry* entry = find(number)) *entry = Entry{};
  }
  /// The slot of a number, which may be empty; null for a number out of range.
  [[nodiscard]] Entry* find(std::uint32_t number) noexcept {
    const std::size_t slot = static_cast<std::size_t>(number) - first_;
    return slot < slots_.size() ? &slots_[slot] : nullptr;
  }

 private:
  std::uint32_t first_, last_, next_;
  std::vector<Entry> slots_{};
};

/// A region or a window behind a key.
struct key_entry {
  std::uint32_t key = 0;
  sim_mr* mr = nullptr;
  sim_mw* mw = nullptr;
  [[nodiscard]] explicit operator bool() const noexcept { return mr || mw; }
};

/// Keys are a 24-bit index and an 8-bit tag; the table is by index.
class key_table : public cyclic_table<key_entry> {
 public:
  key_table() noexcept : cyclic_table(1, 0xffffff) {}
  /// The entry with exactly this key, or null.
  [[nodiscard]] key_entry* find_key(std::uint32_t key) noexcept {
    key_entry* entry = find(key >> 8);
    return entry && *entry && entry->key == key ? entry : nullptr;
  }
};

/// QP numbers begin where Soft-RoCE's do; 0 and 1 are the management queue pairs.
class qp_table : public cyclic_table<sim_qp*> {
 public:
  qp_table() noexcept : cyclic_table(17, 0xffffff) {}
  [[nodiscard]] sim_qp* find_qp(std::uint32_t number) noexcept {
    sim_qp** entry = find(number);
    return entry ? *entry : nullptr;
  }
};

/// SRQ numbers, by which XRC senders name a queue.
class srq_table : public cyclic_table<sim_srq*> {
 public:
  srq_table() noexcept : cyclic_table(1, 0xffffff) {}
  [[nodiscard]] sim_srq* find_srq(std::uint32_t number) noexcept {
    sim_srq** entry = find(number);
    return entry ? *entry : nullptr;
  }
};

}  // namespace ibvxx::shim
