#include "engine.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "sim_device.hpp"
#include "sim_objects.hpp"
#include "verb_facts.hpp"

namespace ibvxx::shim {
namespace {

thread_local int depth = 0;
thread_local bool acting = false;  // inside a rule's action

/// While it lives, the calls of this thread are those of an action: carried out, not counted, and
/// struck by no rule.
class action_scope {
 public:
  action_scope() noexcept { acting = true; }
  action_scope(const action_scope&) = delete;
  action_scope& operator=(const action_scope&) = delete;
  ~action_scope() {
    acting = false;
    depth = outer_;
  }

 private:
  int outer_ = std::exchange(depth, 0);
};

std::mutex& engine_lock() {
  static auto* lock =
      new std::mutex;  // never destroyed: calls may come as long as the process lives
  return *lock;
}

std::shared_ptr<session_state> current;
std::atomic<bool> session_flag{false};
std::atomic<bool> simulation_flag{false};
std::atomic<std::uint64_t> sessions{0};
std::atomic<int> region_count{0};

/// Objects of sessions that ended. Bounded: the oldest are forgotten, and a use of those is not
/// recognised any more.
class retired_objects {
 public:
  void retire(const ledger& objects) {
    for (const record& object : objects.records()) {
      if (!object.storage) continue;
      if (object.kind == object_kind::context)
        static_cast<sim_context*>(object.storage.get())->close_descriptors();
      if (object.kind == object_kind::comp_channel)
        static_cast<sim_comp_channel*>(object.storage.get())->close_descriptor();
      objects_[object.handle] = {object.title, object.storage};
      order_.push_back(object.handle);
    }
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
  static auto* objects = new retired_objects;
  return *objects;
}

/// IBVXX_SHIM=simulate: a program without a session of its own sees one simulated device. With
/// "forward" or "off", or nothing, its calls go to the real library.
void begin_ambient_session() {
  static bool asked = false;  // guarded by the engine's lock
  if (std::exchange(asked, true) || current) return;
  const char* mode = std::getenv("IBVXX_SHIM");
  const std::string_view wanted = mode ? mode : "";
  if (wanted != "simulate") {
    if (!wanted.empty() && wanted != "forward" && wanted != "off")
      std::fprintf(stderr,
                   "ibvxx-shim: IBVXX_SHIM=%s is none of simulate, forward and off: calls go to "
                   "libibverbs\n",
                   mode);
    return;
  }
  current = std::make_unique<session_state>();
  current->devices = make_devices({});
  ++sessions;
  session_flag = simulation_flag = true;
}

/// Calls that need no command to the kernel, or that get their answer all the same.
[[nodiscard]] bool outlives_device(verb v) noexcept {
  return v == verb::close_device || v == verb::get_async_event || v == verb::ack_async_event ||
         v == verb::ack_cq_events || v == verb::poll_cq || v == verb::destroy_comp_channel;
}

}  // namespace

namespace engine {

bool in_session() noexcept {
  return session_flag.load(std::memory_order_relaxed);
}

bool simulates() noexcept {
  return simulation_flag.load(std::memory_order_relaxed);
}

session_state& locked() noexcept {
  return *current;
}

std::uint64_t generation() noexcept {
  return sessions.load(std::memory_order_relaxed);
}

bool has_regions() noexcept {
  return region_count.load(std::memory_order_relaxed) != 0;
}

void count_region(int by) noexcept {
  region_count.fetch_add(by, std::memory_order_relaxed);
}

suppress_interception::suppress_interception() noexcept {
  ++depth;
}
suppress_interception::~suppress_interception() {
  --depth;
}

void begin(std::unique_ptr<session_state> state) {
  const std::lock_guard lock(engine_lock());
  if (current) throw std::logic_error("a shim session is in force already: only one at a time");
  current = std::move(state);
  ++sessions;
  session_flag = true;
  simulation_flag = !current->forwarding;
}

void end() noexcept {
  const suppress_interception quiet;
  const std::lock_guard lock(engine_lock());
  session_flag = simulation_flag = false;
  watched_threads().turn(false);
  region_count = 0;
  retired().retire(current->objects);
  current.reset();
}

access lock_session() {
  std::unique_lock lock(engine_lock());
  if (!current) throw std::logic_error("the shim session has ended");
  return {std::move(lock), *current};
}

}  // namespace engine

record* session_state::subject_of(verb call, const void* object) const noexcept {
  if (call == verb::close || call == verb::fcntl || call == verb::epoll_ctl)
    return objects.find_descriptor(static_cast<int>(reinterpret_cast<std::intptr_t>(object)));
  return object ? objects.find(object) : nullptr;
}

call::call(verb v, const void* object) noexcept : verb_(v), object_(object) {
  if (depth++ != 0) return;
  const bool data_path = facts_of(v).data_path;
  if (data_path && watched_threads().on()) {
    watched_ = true;
    watched_threads().enter(v, object);
  }
  lock_ = std::unique_lock(engine_lock());
  begin_ambient_session();
  if (current) {
    state_ = current.get();
    if (!acting) {
      ++state_->calls;
      ++state_->counts[static_cast<std::size_t>(v)];
      if (!state_->plan.rules().empty()) fault_ = state_->plan.decide(v, state_->calls, object);
    }
    index_ = state_->calls;
    if (watched_) watch(object);
    record* const subject = subject_ = state_->subject_of(v, object);
    const bool traced =
        !acting && (!data_path || (state_->traces_posts && facts_of(v).errnos.size() != 0));
    std::size_t place = 0;
    if (traced) {
      place = state_->trace.size();
      state_->trace.push_back({index_, v, object, subject, 0});
    }
    // The real library must not be given what a simulation made.
    stale_ = state_->forwarding && !subject && object && retired().find(object);
    if (fault_.action) {
      unlock();
      {
        const action_scope inside;
        fault_.action();
      }
      lock();
    }
    // As the kernel answers every command once the device is gone, which may have been just now.
    if (!fault_.fails && subject && subject->lost && *subject->lost && !outlives_device(v)) {
      fault_.fails = true;
      fault_.code = EIO;
    }
    if (traced && fault_.fails)
      state_->trace[place].injected = fault_.code != 0 ? std::abs(fault_.code) : -1;
    return;
  }
  if (object) {
    if (const std::string* title = retired().find(object)) {
      stale_ = true;
      std::fprintf(stderr, "ibvxx-shim: %s on %s after its session ended\n", name(v),
                   title->c_str());
    }
  }
  lock_.unlock();  // the real call must not run under the lock
}

call::call(verb v, part) noexcept : verb_(v) {
  if (depth++ != 0) return;
  lock_ = std::unique_lock(engine_lock());
  if (current) {
    state_ = current.get();
    index_ = state_->calls;
  } else {
    lock_.unlock();
  }
}

call::~call() {
  if (watched_) watched_threads().leave();
  // What an action holds is freed here, while that is the shim's own doing: to free memory takes
  // the lock where the program does it.
  fault_.action = nullptr;
  held_.reset();
  --depth;
}

void call::hold_session() noexcept {
  if (state_ && !held_) held_ = current;
}

void call::found(finding_kind kind, std::string text, const record* about) noexcept {
  state_->objects.found(kind, std::move(text), about);
}

void call::watch(const void* object) noexcept {
  const record* own = object ? state_->objects.find(object) : nullptr;
  const void* const scope = own ? thread_scope_of(*own) : nullptr;
  if (!scope) return;
  for (const thread_watch::visit& other : watched_threads().others()) {
    const record* met = state_->objects.find(other.object);
    if (!met || thread_scope_of(*met) != scope || !state_->reported_races.insert(scope).second)
      continue;
    found(finding_kind::wrong_thread,
          here() + " on " + own->title + " while another thread is in " + name(other.call) +
              " on " + (met == own ? "it" : met->title) + ", though " +
              (scope == object
                   ? "it was created for a single thread"
                   : state_->objects.find(scope)->title + " promises one thread at a time"),
          own);
  }
}

void call::refuse_null(const char* argument) noexcept {
  found(finding_kind::foreign_pointer,
        here() + " was given a null pointer as " + argument + ", at which libibverbs crashes");
}

std::string call::here() const {
  return std::string(name(verb_)) + " (call " + std::to_string(index_) + ")";
}

void call::refuse_handle(object_kind kind, const void* handle, const record* object,
                         bool ending) noexcept {
  if (!state_) return;  // after the session's end: said so already
  if (!object) {
    char address[32];
    std::snprintf(address, sizeof address, "%p", handle);
    found(finding_kind::foreign_pointer,
          here() + " was given " + (handle ? address : "a null pointer") +
              ", which no verb of this session returned as " + name(kind));
  } else if (object->kind != kind) {
    found(finding_kind::wrong_kind,
          here() + " was given " + object->title + " where a " + name(kind) + " belongs");
  } else if (ending && object->destroyed_but_reported_failure) {
    destroyed_but_reported_failure_ = true;  // trying again was right, and is of no use
  } else {
    found(ending ? finding_kind::double_destroy : finding_kind::use_after_destroy,
          here() + " on " + object->title + ", " + origin(*object) + ", destroyed by call " +
              std::to_string(object->gone_by),
          object);
  }
}

int call::may_destroy(const void* handle) noexcept {
  record& object = *state_->objects.find(handle);
  if (failing()) {
    object.destroy_injected = true;
    return fault_.code;
  }
  if (object.children == 0 || lost(handle)) return 0;
  found(finding_kind::destroyed_in_use,
        here() + " on " + object.title + " while it is used by " +
            state_->objects.children_of(object),
        &object);
  // Only a context goes regardless: ibv_close_device returns 0 in every case, and its children
  // dangle.
  if (object.kind == object_kind::context) return 0;
  // The channel's count is libibverbs' own.
  return object.kind == object_kind::comp_channel ? EBUSY : from_kernel(EBUSY);
}

void call::destroy_regardless(const void* handle) noexcept {
  const record& object = *state_->objects.find(handle);
  if (object.children != 0)
    found(finding_kind::destroyed_in_use,
          here() + " on " + object.title + " while it is used by " +
              state_->objects.children_of(object),
          &object);
  retire(handle);
}

void call::retire(const void* handle) noexcept {
  record& object = *state_->objects.find(handle);
  if (!object.live) return;  // by another thread, while this one waited
  object.destroyed_but_reported_failure = fault_.fails && fault_.after_effect;
  if (object.kind == object_kind::context && lost(handle))
    state_->objects.retire_tree(object, index_);
  else
    state_->objects.retire(object, index_);
}

}  // namespace ibvxx::shim
