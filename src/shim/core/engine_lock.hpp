// The engine's lock.
#pragma once

#include <atomic>
#include <mutex>

namespace ibvxx::shim {

/// A mutex that no thread can keep from another: while a thread has tried for long, those
/// that come later wait as well. Without that a thread that polls in a loop would
/// take a mutex again before a sleeping thread wakes. Not recursive. Costs: without contention, one
/// load more than a mutex.
class engine_lock {
 public:
  void lock() noexcept;
  void unlock() noexcept;

  /// Whether the calling thread holds the lock.
  [[nodiscard]] static bool held() noexcept { return held_; }
  /// For the child of a fork, whose only thread took the lock before, or in which no other thread
  /// is left to give it back.
  void forget_waiting_threads() noexcept { starving_.store(0, std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::atomic<int> starving_{0};  // threads that have tried for long
  static inline constinit thread_local bool held_ = false;
};

/// In a debug build, ends the process if the calling thread holds the lock: what comes next is code
/// of the program or of the C library, which may wait, or call the shim.
void expect_unlocked(const char* before) noexcept;

}  // namespace ibvxx::shim
