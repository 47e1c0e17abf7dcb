// The one session of the process, and the way every intercepted call takes through it.
#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ibvxx/shim/session.hpp>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <type_traits>
#include <vector>

#include "completion_plan.hpp"
#include "fault_plan.hpp"
#include "ledger.hpp"
#include "thread_watch.hpp"

namespace ibvxx::shim {

struct sim_device;
struct sim_mr;
struct sim_qp;

/// A call as the trace keeps it; the record outlives the session's objects.
struct traced_call {
  std::uint64_t index;
  verb call;
  const void* object;
  const record* subject;
  int injected;
};

/// Everything that belongs to the session in force.
struct session_state {
  std::vector<std::shared_ptr<sim_device>> devices;
  fault_plan plan;
  completion_plan completions;
  ledger objects;
  bool forwarding = false;         // to the real library: without devices of its own
  bool strict = false;             // session_options::strict
  std::vector<traced_call> trace;  // without the data path, which would grow it without end,
  bool traces_posts = false;       // unless that is asked for
  std::uint64_t calls = 0;
  std::array<std::uint64_t, verb_count> counts{};
  bool registered = false;  // memory, before which fork support must be asked for
  bool fork_ready = false;
  std::vector<sim_mr*> regions{};  // of the program's memory, alive
  std::vector<sim_qp*> waiting{};  // queue pairs whose next request waits for somebody else
  bool retrying = false;
  /// How long a destroy that would wait for ever is let wait, in case another thread is about to
  /// acknowledge.
  std::chrono::milliseconds destroy_deadline{200};
  std::condition_variable acknowledged{};
  std::condition_variable released{};  // a queue that one thread had to itself for a while

  std::set<const void*> reported_races{};  // where two threads met, each told of once

  void apply(const session_options& options);
  [[nodiscard]] record* subject_of(verb call, const void* object) const noexcept;
};

/// A finding for each rule that did not do anything.
void find_unfired(session_state& state);

/// What lets one thread at a time use an object: its thread domain, or it itself where it was
/// created for a single thread; null where all may.
[[nodiscard]] const void* thread_scope_of(const record& object) noexcept;

/// Begins and ends sessions. `begin` throws std::logic_error while one is in force.
namespace engine {

void begin(std::unique_ptr<session_state> state);
/// Ends the session in force; its objects' memory is kept for a while, so that late uses are
/// recognised.
void end() noexcept;

/// The lock and the session it guards, for those who look at it from outside (sessions and sweeps).
struct access {
  std::unique_lock<std::mutex> lock;
  session_state& state;
};
[[nodiscard]] access lock_session();

/// The session in force, for whoever has its lock already.
[[nodiscard]] session_state& locked() noexcept;

/// Whether a session may be in force: the cheap question that comes before a call.
[[nodiscard]] bool in_session() noexcept;
/// Whether that session has devices of its own.
[[nodiscard]] bool simulates() noexcept;
/// Counts the sessions of the process: what a thread remembers of one is of no use in the next.
[[nodiscard]] std::uint64_t generation() noexcept;
/// Whether memory of the program is registered, as far as can be told without the lock.
[[nodiscard]] bool has_regions() noexcept;
void count_region(int by) noexcept;

/// While it lives, calls of this thread are not seen: the shim's own.
class suppress_interception {
 public:
  suppress_interception() noexcept;
  suppress_interception(const suppress_interception&) = delete;
  suppress_interception& operator=(const suppress_interception&) = delete;
  ~suppress_interception();
};

}  // namespace engine

/// One intercepted call, from entry to return. It counts the call, decides whether it fails, and
/// holds the session's lock meanwhile. The pattern of every intercepted function:
///
///   call c(verb::alloc_pd, context);
///   if (c.forwarded()) return <the real one>;
///   auto* owner = c.use<sim_context>(context);          // null: what is wrong has been written
///   down if (!owner || c.failing()) return c.refuse_pointer();
class call {
 public:
  call(verb v, const void* object) noexcept;
  /// A look at the session in the middle of something that is counted elsewhere.
  enum class part { uncounted };
  call(verb v, part) noexcept;
  call(const call&) = delete;
  call& operator=(const call&) = delete;
  ~call();

  /// A session looks at it: there is one, and the call does not come from within another.
  [[nodiscard]] bool is_seen() const noexcept { return state_ != nullptr; }
  /// The real library answers: there is no session, it forwards, or the call comes from within
  /// another one.
  [[nodiscard]] bool forwarded() const noexcept {
    return state_ ? state_->forwarding && !stale_ : !stale_;
  }
  /// A rule makes the call fail before it does anything.
  [[nodiscard]] bool failing() const noexcept {
    return fault_.fails && !fault_.after_effect && fault_.request == 0;
  }
  [[nodiscard]] bool refuses_some_request() const noexcept {
    return fault_.fails && fault_.request != 0;
  }
  /// A rule refuses this request of the list that was given, the first being 1.
  [[nodiscard]] bool refuses_request(std::size_t place) noexcept {
    if (!fault_.fails || fault_.request != place) [[likely]]
      return false;
    state_->plan.fired(fault_);
    return true;
  }
  [[nodiscard]] int refusal_of_request() const noexcept { return fault_.code; }
  /// What a call returns that has done what it was to do, unless with an error: a rule may have it
  /// report a failure.
  [[nodiscard]] int concluded(int code = 0) const noexcept {
    return code == 0 && fault_.fails && fault_.after_effect ? fault_.code : code;
  }
  [[nodiscard]] session_state& state() const noexcept { return *state_; }
  [[nodiscard]] std::uint64_t index() const noexcept { return index_; }

  /// The live object of this kind behind a handle. Otherwise a finding, and null.
  template <class Sim>
  [[nodiscard]] Sim* use(const void* handle) noexcept {
    record* object = check(Sim::kind, handle, false);
    return object ? static_cast<Sim*>(object->storage.get()) : nullptr;
  }
  /// The same for a handle that is about to be destroyed.
  template <class Sim>
  [[nodiscard]] Sim* ending(const void* handle) noexcept {
    record* object = check(Sim::kind, handle, true);
    return object ? static_cast<Sim*>(object->storage.get()) : nullptr;
  }
  /// Lets others in while this call waits for something, and comes back: to the same session,
  /// though it may have ended meanwhile.
  void unlock() noexcept {
    hold_session();
    lock_.unlock();
  }
  void lock() noexcept { lock_.lock(); }
  /// Waits on `condition` until `done()` or the session's deadline for blocking destroys; false if
  /// that passed.
  template <class Done>
  [[nodiscard]] bool wait(std::condition_variable& condition, Done&& done) noexcept {
    hold_session();
    return condition.wait_for(lock_, state_->destroy_deadline, done);
  }
  /// The same with a deadline of one's own.
  template <class Done>
  [[nodiscard]] bool wait(std::condition_variable& condition, std::chrono::milliseconds deadline,
                          Done&& done) noexcept {
    hold_session();
    return condition.wait_for(lock_, deadline, done);
  }

  [[nodiscard]] record* record_of(const void* handle) const noexcept {
    return state_->objects.find(handle);
  }

  /// Writes down a new object, whose storage holds its `handle`.
  template <class Sim>
  record& add(const std::shared_ptr<Sim>& made, const void* handle, const std::string& device,
              std::span<record* const> parents) {
    return state_->objects.add(Sim::kind, handle, made, device, verb_, index_, parents);
  }
  template <class Sim>
  record& add(const std::shared_ptr<Sim>& made, const void* handle, const std::string& device,
              std::initializer_list<record*> parents) {
    return add(made, handle, device, std::span(parents.begin(), parents.size()));
  }
  /// Decides a destroy: 0, or the errno and the object stays (injected, or EBUSY while others need
  /// it).
  [[nodiscard]] int may_destroy(const void* handle) noexcept;
  /// The object is gone.
  void retire(const void* handle) noexcept;
  /// Both.
  [[nodiscard]] int destroy(const void* handle) noexcept {
    const int code = may_destroy(handle);
    if (code == 0) retire(handle);
    return code;
  }
  /// Before a call goes on to the real library: false where a rule makes it fail, or what it is
  /// called on is gone. What a destroy would wait for is waited for here, though not for ever.
  [[nodiscard]] bool is_admitted() noexcept;
  [[nodiscard]] bool was_refused() const noexcept { return refused_; }
  /// The real library has given an object another protection domain.
  void moved_to(const void* object, const void* pd) noexcept;
  /// The real library has done it, and made this.
  void carried_out(const void* made = nullptr) noexcept;

  /// An argument that libibverbs follows: false, with a finding, where it is null.
  [[nodiscard]] bool given(const void* argument, const char* name) noexcept {
    if (argument) [[likely]]
      return true;
    refuse_null(name);
    return false;
  }
  /// The same for a verb that returns nothing: the object goes, whoever still needs it.
  void destroy_regardless(const void* handle) noexcept;
  /// Whether the device of the object is gone.
  [[nodiscard]] bool lost(const void* handle) const noexcept {
    const record& object = *record_of(handle);
    return object.lost && *object.lost;
  }

  /// What a refused call returns, by convention: the injected errno, else `otherwise`.
  [[nodiscard]] int refuse_code(int otherwise = EINVAL) const noexcept {
    return failing() ? fault_.code : destroyed_but_reported_failure_ ? ENOENT : otherwise;
  }
  [[nodiscard]] std::nullptr_t refuse_pointer(int otherwise = EINVAL) const noexcept {
    errno = refuse_code(otherwise);
    return nullptr;
  }
  [[nodiscard]] int refuse_minus_one(int otherwise = EINVAL) const noexcept {
    errno = refuse_code(otherwise);
    return -1;
  }
  /// Whichever of these is the verb's.
  [[nodiscard]] int refuse_by_convention() const noexcept;

  /// What a verb returns whose answer is the kernel's: a failure is in errno too (measured), other
  /// than those that libibverbs and providers find out themselves.
  [[nodiscard]] static int from_kernel(int code) noexcept {
    if (code != 0) errno = code;
    return code;
  }

  /// Writes down something wrong; `about`: the object concerned.
  void found(finding_kind kind, std::string text, const record* about = nullptr) noexcept;

  /// "ibv_destroy_cq (call 17)": how findings begin.
  [[nodiscard]] std::string here() const;

 private:
  [[nodiscard]] record* check(object_kind kind, const void* handle, bool ending) noexcept {
    record* object = state_ && handle ? state_->objects.find(handle) : nullptr;
    if (object && object->kind == kind && object->live) [[likely]]
      return object;
    refuse_handle(kind, handle, object, ending);
    return nullptr;
  }
  /// Writes down what is wrong with a handle.
  void refuse_handle(object_kind kind, const void* handle, const record* object,
                     bool ending) noexcept;
  void refuse_null(const char* argument) noexcept;
  void hold_session() noexcept;
  /// Looks at whether another thread is where only one may be.
  void watch(const void* object) noexcept;

  std::unique_lock<std::mutex> lock_;
  session_state* state_ = nullptr;
  std::shared_ptr<session_state> held_{};  // where the lock was let go of
  verb verb_;
  const void* object_ = nullptr;
  record* subject_ = nullptr;  // of the object, if the ledger has it
  bool stale_ = false;         // the object is of an earlier session, and none simulates it now
  bool destroyed_but_reported_failure_ =
      false;  // the object's destroy took effect and reported a failure
  bool watched_ = false;
  bool refused_ = false;
  decision fault_{};
  std::uint64_t index_ = 0;
};

}  // namespace ibvxx::shim
