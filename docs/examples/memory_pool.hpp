// Registered memory in blocks of one size: registering is slow, so it is done once, for all of
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// Blocks may be taken and returned on any thread. The pool must outlive them, and its
/// protection domain must outlive the pool.
class memory_pool {
 public:
  memory_pool(ibvxx::ref<ibv_pd> pd, std::size_t block_size, std::size_t count, int access)
      : block_size_(block_size),
        memory_(block_size * count),
        region_(ibvxx::or_throw(ibvxx::reg_mr(pd, std::span(memory_), access))) {
    for (std::size_t i = count; i-- > 0;) free_.push_back(&memory_[i * block_size]);
  }

  /// A block of the pool's memory; its destructor returns it to the pool.
  class block {
   public:
    block(block&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), begin_(other.begin_) {}
    block& operator=(block&&) = delete;
    ~block() {
      if (pool_) pool_->give_back(begin_);
    }
    [[nodiscard]] std::span<std::byte> memory() const noexcept {
      return {begin_, pool_->block_size_};
    }
    /// The first `length` bytes, for a work request.
    [[nodiscard]] ibv_sge piece(std::size_t length) const noexcept {
      return {reinterpret_cast<std::uint64_t>(begin_), static_cast<std::uint32_t>(length),
              pool_->region_->lkey};
    }

   private:
    friend memory_pool;
    block(memory_pool& pool, std::byte* begin) noexcept : pool_(&pool), begin_(begin) {}
    memory_pool* pool_;
    std::byte* begin_;
  };

  /// Empty when all blocks are taken: the caller decides whether to wait or to fail.
  [[nodiscard]] std::optional<block> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::nullopt;
    std::byte* const begin = free_.back();
    free_.pop_back();
    return block(*this, begin);
  }
  [[nodiscard]] std::size_t available() const {
    const std::lock_guard lock(mutex_);
    return free_.size();
  }

 private:
  void give_back(std::byte* begin) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(begin);  // does not allocate: its capacity is that of all blocks
  }

  std::size_t block_size_;
  std::vector<std::byte> memory_;
  ibvxx::unique_mr region_;  // after the memory, so that it is destroyed first
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;
};
