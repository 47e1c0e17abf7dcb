#include "core/thread_watch.hpp"

#include <new>

namespace ibvxx::shim {

namespace {

/// Never destroyed: a verb may be called until the process exits. Not made at first use either: a
/// fork could come in between.
union never_destroyed_watch {
  thread_watch value;
  constexpr never_destroyed_watch() : value() {}
  ~never_destroyed_watch() {}
};
constinit never_destroyed_watch watch;

}  // namespace

thread_watch& watched_threads() noexcept {
  return watch.value;
}

void thread_watch::forget_other_threads() noexcept {
  new (this) thread_watch;
}

void thread_watch::enter(verb call, const void* object) {
  const std::lock_guard lock(lock_);
  inside_.push_back({std::this_thread::get_id(), call, object});
}

void thread_watch::leave() noexcept {
  const std::lock_guard lock(lock_);
  std::erase_if(inside_,
                [own = std::this_thread::get_id()](const visit& v) { return v.thread == own; });
}

std::vector<thread_watch::visit> thread_watch::others() {
  const std::lock_guard lock(lock_);
  std::vector<visit> found;
  for (const visit& v : inside_)
    if (v.thread != std::this_thread::get_id()) found.push_back(v);
  return found;
}

}  // namespace ibvxx::shim
