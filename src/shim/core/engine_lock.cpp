#include "core/engine_lock.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace ibvxx::shim {
namespace {

constexpr int patience = 100;  // attempts, each of which lets other threads run

}  // namespace

void engine_lock::lock() noexcept {
  // A starving thread is woken when the holder unlocks, and no newcomer takes the lock in between.
  for (int starving = starving_.load(std::memory_order_relaxed); starving != 0;
       starving = starving_.load(std::memory_order_relaxed))
    starving_.wait(starving, std::memory_order_relaxed);
  int attempts = 0;
  while (!mutex_.try_lock()) {
    if (++attempts < patience) {
      std::this_thread::yield();
      continue;
    }
    ++starving_;
    mutex_.lock();
    if (--starving_ == 0) starving_.notify_all();
    break;
  }
  held_ = true;
}

void engine_lock::unlock() noexcept {
  held_ = false;
  mutex_.unlock();
}

void refuse_under_lock(const char* function) noexcept {
  std::fprintf(stderr, "ibvxx-shim: %s is called under the engine's lock, a bug of the shim\n",
               function);
  std::abort();
}

}  // namespace ibvxx::shim
