// Tables of a device: regions and windows by key, queue pairs and SRQs by number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ibvxx::shim {

struct sim_mr;
struct sim_mw;
struct sim_qp;
struct sim_srq;

/// Allocates numbers cyclically, as the kernel does: a number that was just released is the last to
/// be used again. Costs: find() and release() are constant; take() is constant, and once in a round
/// over all numbers linear in the pages in use. Memory is linear in the numbers in use, if they
/// were taken in a row; a page for each at worst.
template <class Entry>
class cyclic_table {
 public:
  /// Numbers are first..last.
  cyclic_table(std::uint32_t first, std::uint32_t last) noexcept
      : first_(first), last_(last), next_(first) {}

  /// A free number, taken by `entry`; 0 when there is none.
  [[nodiscard]] std::uint32_t take(const Entry& entry) {
    const std::uint32_t size = last_ - first_ + 1;
    for (std::uint32_t tried = 0; tried < size;) {
      const std::uint32_t slot = next_ - first_;
      page& here = make_page(slot / page_size);
      if (here.used == page_size) {
        const std::uint32_t rest = page_size - slot % page_size;  // no free number in this page
        next_ = last_ - next_ < rest ? first_ : next_ + rest;
        tried += rest;
        continue;
      }
      const std::uint32_t number = next_;
      next_ = next_ == last_ ? first_ : next_ + 1;
      ++tried;
      if (here.slots[slot % page_size]) continue;
      here.slots[slot % page_size] = entry;
      ++here.used;
      return number;
    }
    return 0;
  }
  void release(std::uint32_t number) noexcept {
    Entry* const entry = find(number);
    if (!entry || !*entry) return;
    *entry = Entry{};
    const std::uint32_t place = (number - first_) / page_size;
    --pages_[place]->used;
    free_unused(place);
  }
  /// The slot of a number, which may be empty; null for a number that was never taken, or is out of
  /// range.
  [[nodiscard]] Entry* find(std::uint32_t number) noexcept {
    page* const here = page_of(number);
    return here ? &here->slots[(number - first_) % page_size] : nullptr;
  }

  /// Counts something that names a number, taken or not. Numbers out of range are not counted.
  void refer(std::uint32_t number) {
    if (number < first_ || number > last_) return;
    const std::uint32_t slot = number - first_;
    page& here = make_page(slot / page_size);
    ++here.references[slot % page_size];
    ++here.referenced;
  }
  void unrefer(std::uint32_t number) noexcept {
    page* const here = page_of(number);
    if (!here) return;
    --here->references[(number - first_) % page_size];
    --here->referenced;
    free_unused((number - first_) / page_size);
  }
  [[nodiscard]] bool is_referred_to(std::uint32_t number) const noexcept {
    const page* const here = page_of(number);
    return here && here->references[(number - first_) % page_size] != 0;
  }

 private:
  static constexpr std::uint32_t page_size = 256;
  struct page {
    std::array<Entry, page_size> slots{};
    std::array<std::uint32_t, page_size> references{};
    std::uint32_t used = 0;
    std::uint32_t referenced = 0;
  };

  [[nodiscard]] page* page_of(std::uint32_t number) const noexcept {
    // Below first_ this is beyond every page.
    const std::size_t place = (std::size_t{number} - first_) / page_size;
    return place < pages_.size() ? pages_[place].get() : nullptr;
  }
  [[nodiscard]] page& make_page(std::uint32_t place) {
    if (place >= pages_.size()) pages_.resize(place + 1);
    if (!pages_[place]) pages_[place] = std::make_unique<page>();
    return *pages_[place];
  }
  /// The page of the next number stays: a table with few entries would make and free it each time.
  void free_unused(std::uint32_t place) noexcept {
    if (pages_[place]->used == 0 && pages_[place]->referenced == 0 &&
        place != (next_ - first_) / page_size)
      pages_[place].reset();
  }

  std::uint32_t first_, last_, next_;
  std::vector<std::unique_ptr<page>> pages_{};
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
