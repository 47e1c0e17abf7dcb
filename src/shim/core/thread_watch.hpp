// Which threads are in which calls. The engine's lock would serialise two calls that overlap in the
// program, so calls are registered here before they take it.
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

  /// False, so that calls are not registered, until the session has an object that only one thread
  /// at a time may use.
  [[nodiscard]] bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  void turn(bool on) noexcept { on_.store(on, std::memory_order_relaxed); }

  /// For a fork: while it is held, no other thread is in a member function.
  void hold() noexcept { lock_.lock(); }
  void let_go() noexcept { lock_.unlock(); }

  void enter(verb call, const void* object);
  void leave() noexcept;
  /// The visits of other threads at this moment.
  [[nodiscard]] std::vector<visit> others();

 private:
  std::atomic<bool> on_{false};
  std::mutex lock_;
  std::vector<visit> inside_;
};

/// The watch of the process: calls use it before they take the engine's lock.
[[nodiscard]] thread_watch& watched_threads() noexcept;

}  // namespace ibvxx::shim
