#include "core/engine.hpp"

#include <atomic>
#include <cstddef>
#include <deque>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "core/thread_watch.hpp"

namespace ibvxx::shim::engine {
namespace {

/// A value that is never destroyed: a verb may be called until the process exits.
template <class T>
union never_destroyed {
  T value;
  constexpr never_destroyed() : value() {}
  ~never_destroyed() {}
};

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
  [[nodiscard]] const std::string* find(const void* handle) const {
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : &found->second.title;
  }

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

constinit never_destroyed<std::mutex> engine_lock;
constinit never_destroyed<std::shared_ptr<session_state>> session;
constinit std::atomic<bool> session_flag{false};
constinit std::atomic<bool> simulation_flag{false};
constinit std::atomic<std::uint64_t> sessions{0};
constinit ambient_session make_ambient = nullptr;  // null once called

void put_in_force(std::unique_ptr<session_state> state) {
  session.value = std::move(state);
  ++sessions;
  session_flag = true;
  simulation_flag = !session.value->forwards();
}

}  // namespace

std::mutex& lock() noexcept {
  return engine_lock.value;
}

const std::shared_ptr<session_state>& current() noexcept {
  if (const auto make = std::exchange(make_ambient, nullptr); make && !session.value) [[unlikely]]
    if (auto made = make()) put_in_force(std::move(made));
  return session.value;
}

const std::shared_ptr<session_state>& current_or_none() noexcept {
  return session.value;
}

const std::string* find_retired(const void* handle) noexcept {
  return retired().find(handle);
}

bool in_session() noexcept {
  return session_flag.load(std::memory_order_relaxed);
}

bool simulates() noexcept {
  return simulation_flag.load(std::memory_order_relaxed);
}

std::uint64_t generation() noexcept {
  return sessions.load(std::memory_order_relaxed);
}

void set_ambient_session(ambient_session make) noexcept {
  make_ambient = make;
}

void begin(std::unique_ptr<session_state> state) {
  const std::lock_guard guard(lock());
  if (session.value)
    throw std::logic_error("a shim session is in force already: only one at a time");
  put_in_force(std::move(state));
}

void end() noexcept {
  const suppress_interception quiet;
  const std::lock_guard guard(lock());
  session_flag = simulation_flag = false;
  watched_threads().turn(false);
  session_state& ending = *session.value;
  if (ending.simulated) ending.simulated->end(ending.objects);
  retired().retire(ending.objects);
  session.value.reset();
}

access lock_session() {
  std::unique_lock guard(lock());
  if (!session.value) throw std::logic_error("the shim session has ended");
  return {std::move(guard), *session.value};
}

}  // namespace ibvxx::shim::engine
