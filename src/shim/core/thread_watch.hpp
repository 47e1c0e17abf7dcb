// Which threads are inside which calls. The engine's lock admits one call at a time, so two calls
// that overlap in the program are seen here, before they take it.
#pragma once

#include <atomic>
#include <ibvxx/verb.hpp>
#include <mutex>
#include <thread>
#include <vector>

namespace ibvxx::shim {

class thread_watch {
 public:
  struct visit {
    std::thread::id thread;
    verb call;
    const void* object;
  };

  /// Nothing is watched, and nothing costs anything, before something was made that only one thread
  /// at a time may use.
  [[nodiscard]] bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  void turn(bool on) noexcept { on_.store(on, std::memory_order_relaxed); }

  void enter(verb call, const void* object);
  void leave() noexcept;
  /// The visits of other threads at this moment.
  [[nodiscard]] std::vector<visit> others();

 private:
  std::atomic<bool> on_{false};
  std::mutex lock_;
  std::vector<visit> inside_;
};

/// The one of the process: it is asked before the session's lock is taken.
[[nodiscard]] thread_watch& watched_threads() noexcept;

}  // namespace ibvxx::shim
