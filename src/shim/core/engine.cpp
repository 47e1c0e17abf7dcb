#include "core/engine.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "core/never_destroyed.hpp"
#include "core/thread_watch.hpp"

namespace ibvxx::shim::engine {
namespace {

/// Objects of sessions that have ended. Only the latest are kept, so that memory stays bounded; a
/// use of an older one is not recognised. Costs: a look-up is constant.
class retired_objects {
 public:
  void retire(const ledger& objects) {
    objects.for_each([this](const record& object) {
      if (!object.storage) return;
      objects_[object.handle] = {object.title, object.storage};
      order_.push_back(object.handle);
    });
    while (order_.size() > capacity) {
      objects_.erase(order_.front());
      order_.pop_front();
    }
  }
  [[nodiscard]] std::string find(const void* handle) const {
    const auto found = objects_.find(handle);
    return found == objects_.end() ? std::string() : found->second.title;
  }
  [[nodiscard]] bool contains(const void* handle) const noexcept {
    return objects_.find(handle) != objects_.end();
  }
  [[nodiscard]] bool empty() const noexcept { return objects_.empty(); }

 private:
  static constexpr std::size_t capacity = 4096;
  struct retired_object {
    std::string title;
    std::shared_ptr<void> storage;
  };
  std::unordered_map<const void*, retired_object> objects_;
  std::deque<const void*> order_;
};

retired_objects& retired() {
  static auto* objects = new retired_objects;  // never destroyed
  return *objects;
}

constinit never_destroyed<engine_lock> the_lock;
constinit never_destroyed<std::shared_ptr<session_state>> session;
// The session that was in force where this process was forked. Never changed, nor freed: its
// objects' memory may be in use by the program.
constinit never_destroyed<std::shared_ptr<session_state>> inherited;
constinit std::atomic<bool> session_flag{false};
constinit std::atomic<bool> simulation_flag{false};
constinit std::atomic<bool> idle_flag{true};
constinit std::atomic<std::uint64_t> sessions{0};
constinit std::atomic<pid_t> owner{0};              // the process whose session is in force
constinit ambient_session make_ambient = nullptr;   // null once called
constinit ambient_session first_ambient = nullptr;  // for the children of forks

/// Needs the lock, but in constructors of priority 101 and in the child of a fork.
void set_flags() noexcept {
  session_flag = session.value != nullptr;
  simulation_flag = session.value && !session.value->forwards();
  idle_flag = !session.value && !inherited.value && !make_ambient && retired().empty();
}

// A fork waits for the calls of other threads, so that the child finds a consistent state. Where it
// is called from within a call (by a signal handler), this thread may hold one of the locks.
constinit thread_local bool locked_for_fork = false;
constinit fork_guard* fork_guards = nullptr;

void before_fork() noexcept {
  if (!(locked_for_fork = call_depth == 0)) return;
  the_lock.value.lock();
  for (const fork_guard* one = fork_guards; one; one = one->next) one->lock();
}

void after_fork_in_parent() noexcept {
  if (!std::exchange(locked_for_fork, false)) return;
  for (const fork_guard* one = fork_guards; one; one = one->next) one->unlock();
  the_lock.value.unlock();
}

void after_fork_in_child() noexcept {
  const bool consistent = locked_for_fork;
  the_lock.value.forget_waiting_threads();
  if (consistent)
    after_fork_in_parent();
  else
    new (&the_lock.value) engine_lock;
  watched_threads().turn(false);
  if (session.value) {
    ++sessions;
    // Nothing is destroyed: the program may use the objects' memory.
    if (consistent) new (&inherited.value) std::shared_ptr<session_state>(session.value);
    new (&session.value) std::shared_ptr<session_state>;
  }
  make_ambient = first_ambient;
  set_flags();
}

void watch_forks() {
  static const int registered =
      ::pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
  static_cast<void>(registered);
}

void put_in_force(std::unique_ptr<session_state> state) {
  session.value = std::move(state);
  owner = ::getpid();
  ++sessions;
  set_flags();
}

}  // namespace

engine_lock& lock() noexcept {
  return the_lock.value;
}

const std::shared_ptr<session_state>& current() noexcept {
  if (const auto make = std::exchange(make_ambient, nullptr)) [[unlikely]] {
    if (auto made = session.value ? nullptr : make())
      put_in_force(std::move(made));
    else
      set_flags();
  }
  return session.value;
}

const std::shared_ptr<session_state>& current_or_none() noexcept {
  return session.value;
}

void guard_forks(fork_guard& guard) noexcept {
  guard.next = fork_guards;
  fork_guards = &guard;
}

bool is_retired(const void* handle) noexcept {
  return (inherited.value && inherited.value->objects.find(handle)) || retired().contains(handle);
}

std::string describe_retired(const void* handle) {
  const record* own = inherited.value ? inherited.value->objects.find(handle) : nullptr;
  return own ? own->title + ", which the parent process made before the fork"
             : retired().find(handle) + " after its session ended";
}

bool idle() noexcept {
  return idle_flag.load(std::memory_order_relaxed);
}

bool in_session() noexcept {
  return session_flag.load(std::memory_order_relaxed);
}

bool in_session_of_this_process() noexcept {
  return in_session() && owner.load(std::memory_order_relaxed) == ::getpid();
}

bool simulates() noexcept {
  return simulation_flag.load(std::memory_order_relaxed);
}

std::uint64_t generation() noexcept {
  return sessions.load(std::memory_order_relaxed);
}

void set_ambient_session(ambient_session make) noexcept {
  make_ambient = first_ambient = make;
  watch_forks();
  set_flags();
}

void begin(std::unique_ptr<session_state> state) {
  watch_forks();
  {
    const suppress_interception quiet;
    const std::lock_guard guard(lock());
    if (!session.value) put_in_force(std::move(state));
  }
  // What is left was not put in force.
  if (state) throw std::logic_error("a shim session is in force already: only one at a time");
}

void end() noexcept {
  const suppress_interception quiet;
  const std::lock_guard guard(lock());
  watched_threads().turn(false);
  session_state& ending = *session.value;
  if (ending.simulated) ending.simulated->end(ending.objects);
  retired().retire(ending.objects);
  session.value.reset();
  set_flags();
}

access lock_session() {
  std::unique_lock guard(lock());
  if (session.value) return {std::move(guard), *session.value};
  guard.unlock();
  throw std::logic_error("the shim session has ended");
}

}  // namespace ibvxx::shim::engine
