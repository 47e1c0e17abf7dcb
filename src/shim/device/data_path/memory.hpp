// Memory as work requests name it: checked by key, range, access and domain, then copied.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.hpp"

namespace ibvxx::shim {

struct sim_qp;

/// A range of bytes. With a null pointer, reads return zeros and writes are discarded.
struct segment {
  std::byte* bytes;
  std::uint64_t length;
};

/// The segments of one request. Costs: add() and access are constant; only a request with more
/// segments than `few_` holds allocates.
class segment_list {
 public:
  segment_list() noexcept {}  // the array is left as it is
  void add(segment one) {
    if (count_ < few_.size())
      few_[count_++] = one;
    else
      many_.push_back(one);
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_ + many_.size(); }
  [[nodiscard]] const segment& operator[](std::size_t i) const noexcept {
    return i < count_ ? few_[i] : many_[i - count_];
  }

 private:
  std::array<segment, 32> few_;
  std::size_t count_ = 0;
  std::vector<segment> many_{};
};

/// What is wrong with a piece of memory.
enum class memory_fault : std::uint8_t { none, key, range, access };

/// The memory of scatter or gather entries in a domain (null: any), as much as it takes to make up
/// `length` bytes, or all. Entries of length 0, and those behind the last byte, are skipped without
/// a check (measured).
[[nodiscard]] memory_fault find_local(sim_device& device, const void* domain, const ibv_sge* sges,
                                      std::size_t count, bool writable, segment_list& found,
                                      std::uint64_t length = UINT64_MAX);

/// `length` bytes behind an rkey, for a request that came in through `qp` and needs one of the
/// remote access bits.
[[nodiscard]] memory_fault find_remote(sim_device& device, const sim_qp& qp, std::uint32_t rkey,
                                       std::uint64_t address, std::uint64_t length, unsigned access,
                                       segment& found) noexcept;

/// Copies all of `from` to the first bytes of `to`, or as much as fits. The two may overlap. Each
/// byte is copied once.
void copy(const segment_list& from, const segment_list& to) noexcept;
void copy(const segment_list& from, const segment& to) noexcept;
void copy(const segment& from, const segment_list& to) noexcept;

}  // namespace ibvxx::shim
