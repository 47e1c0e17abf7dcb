#include "core/thread_watch.hpp"

#include "core/engine.hpp"
#include "core/never_destroyed.hpp"

namespace ibvxx::shim {
namespace {

constinit never_destroyed<thread_watch> watch;
constinit engine::fork_guard watch_guard{[]() noexcept { watch.value.hold(); },
                                         []() noexcept { watch.value.let_go(); }};

[[gnu::constructor(101)]] void guard_watch() noexcept {
  engine::guard_forks(watch_guard);
}

}  // namespace

thread_watch& watched_threads() noexcept {
  return watch.value;
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
