// The engine's lock.
#pragma once

#include <atomic>
#include <mutex>

namespace ibvxx::shim {

/// A mutex that no thread can keep from another: while a thread has tried for long, those that come
/// later wait as well. Without that a thread that polls in a loop would take a mutex again before a
/// sleeping thread wakes. Not recursive. Costs: without contention, one load more than a mutex.
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

/// Writes which function is called under the lock, and ends the process.
[[noreturn]] void refuse_under_lock(const char* function) noexcept;

/// Called before code of the program, of the real libibverbs or of the C library, which may wait,
/// or call the shim. A debug build ends the process if the calling thread holds the lock.
inline void expect_unlocked([[maybe_unused]] const char* function) noexcept {
#ifdef IBVXX_SHIM_CHECKS_LOCK
  if (engine_lock::held()) refuse_under_lock(function);
#endif
}

}  // namespace ibvxx::shim
