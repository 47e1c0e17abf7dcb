#include "device/data_path/memory.hpp"

#include <algorithm>
#include <cstring>

#include "device/key_table.hpp"
#include "device/memory.hpp"
#include "device/memory_window.hpp"
#include "device/misuse.hpp"
#include "device/page_check.hpp"
#include "device/queue_pair.hpp"

namespace ibvxx::shim {
namespace {

/// Whether `length` bytes at `address` are inside a range; without overflow.
[[nodiscard]] bool inside(std::uint64_t address, std::uint64_t length, std::uint64_t begin,
                          std::uint64_t size) noexcept {
  return address >= begin && address - begin <= size && length <= size - (address - begin);
}

/// The bytes at an address. Null where they must not be accessed: the region has none, or the
/// program has freed or unmapped them.
[[nodiscard]] std::byte* bytes_at(sim_mr& region, std::uint64_t address,
                                  std::uint64_t length) noexcept {
  if (!region.bytes) return nullptr;
  std::byte* const bytes = region.bytes + (address - region.iova);
  if (region.forgotten.overlaps(address, address + length)) {
    find_use_of_forgotten(region);
    return nullptr;
  }
  // free() gives large blocks back to the kernel by a munmap() that is not interposed.
  constexpr std::uint64_t large = std::uint64_t{64} << 10;
  if (region.length >= large && region.kind_of_memory == sim_mr::backing::memory &&
      !is_mapped(bytes, length)) {
    find_use_of_forgotten(region);
    return nullptr;
  }
  return bytes;
}

/// A position in a list of segments.
class cursor {
 public:
  explicit cursor(const segment_list& list) noexcept : list_(list) { skip(); }
  [[nodiscard]] bool at_end() const noexcept { return index_ == list_.size(); }
  [[nodiscard]] std::uint64_t left() const noexcept { return list_[index_].length - offset_; }
  [[nodiscard]] std::byte* bytes() const noexcept {
    return list_[index_].bytes ? list_[index_].bytes + offset_ : nullptr;
  }
  void advance(std::uint64_t length) noexcept {
    offset_ += length;
    skip();
  }

 private:
  void skip() noexcept {
    while (index_ < list_.size() && offset_ == list_[index_].length) {
      ++index_;
      offset_ = 0;
    }
  }
  const segment_list& list_;
  std::size_t index_ = 0;
  std::uint64_t offset_ = 0;
};

void copy_bytes(const std::byte* from, std::byte* to, std::uint64_t length) noexcept {
  if (!to || from == to) return;
  if (from)
    std::memmove(to, from, length);
  else
    std::memset(to, 0, length);
}

}  // namespace

memory_fault find_local(sim_device& device, const void* domain, const ibv_sge* sges,
                        std::size_t count, bool writable, segment_list& found,
                        std::uint64_t length) {
  for (std::size_t i = 0; i < count && length != 0; ++i) {
    const ibv_sge& one = sges[i];
    if (one.length == 0) continue;
    const key_entry* entry = device.keys.find_key(one.lkey);
    if (!entry || !entry->mr) return memory_fault::key;
    sim_mr& region = *entry->mr;
    if (domain && region.domain != domain) return memory_fault::key;
    if (writable && (region.access & IBV_ACCESS_LOCAL_WRITE) == 0) return memory_fault::access;
    if (!inside(one.addr, one.length, region.iova, region.length)) return memory_fault::range;
    found.add({bytes_at(region, one.addr, one.length), one.length});
    length -= std::min<std::uint64_t>(length, one.length);
  }
  return memory_fault::none;
}

memory_fault find_remote(sim_device& device, const sim_qp& qp, std::uint32_t rkey,
                         std::uint64_t address, std::uint64_t length, unsigned access,
                         segment& found) noexcept {
  const key_entry* entry = device.keys.find_key(rkey);
  if (!entry) return memory_fault::key;
  if (sim_mr* region = entry->mr) {
    if (qp.domain && region->domain != qp.domain) return memory_fault::key;
    if ((region->access & access) == 0) return memory_fault::access;
    if (!inside(address, length, region->iova, region->length)) return memory_fault::range;
    found = {bytes_at(*region, address, length), length};
    return memory_fault::none;
  }
  const sim_mw& window = *entry->mw;
  if (!window.region) return memory_fault::key;
  // A window of type 1 serves every queue pair of its domain, one of type 2 the one that it was
  // bound through.
  const bool mine = window.verbs.type == IBV_MW_TYPE_2 ? window.qp_number == qp.verbs.qp_num
                                                       : !qp.domain || window.domain == qp.domain;
  if (!mine) return memory_fault::key;
  if ((window.access & access) == 0) return memory_fault::access;
  const bool zero_based = (window.access & IBV_ACCESS_ZERO_BASED) != 0;
  const std::uint64_t begin = zero_based ? 0 : window.address;
  // Soft-RoCE of Linux 6.1 looks at the region's range only (measured), which is a bug: IBA
  // 10.6.7.2.6 requires the window's.
  if (!inside(address, length, begin, window.length)) return memory_fault::range;
  found = {bytes_at(*window.region, address - begin + window.address, length), length};
  return memory_fault::none;
}

void copy(const segment_list& from, const segment& to) noexcept {
  std::byte* next = to.bytes;
  std::uint64_t left = to.length;
  for (std::size_t i = 0; i < from.size() && left != 0; ++i) {
    const std::uint64_t length = std::min(left, from[i].length);
    copy_bytes(from[i].bytes, next, length);
    if (next) next += length;
    left -= length;
  }
}

void copy(const segment& from, const segment_list& to) noexcept {
  const std::byte* next = from.bytes;
  std::uint64_t left = from.length;
  for (std::size_t i = 0; i < to.size() && left != 0; ++i) {
    const std::uint64_t length = std::min(left, to[i].length);
    copy_bytes(next, to[i].bytes, length);
    if (next) next += length;
    left -= length;
  }
}

void copy(const segment_list& from, const segment_list& to) noexcept {
  cursor source(from);
  cursor target(to);
  while (!source.at_end() && !target.at_end()) {
    const std::uint64_t length = std::min(source.left(), target.left());
    copy_bytes(source.bytes(), target.bytes(), length);
    source.advance(length);
    target.advance(length);
  }
}

}  // namespace ibvxx::shim
