// One intercepted call, from entry to return.
#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <ibvxx/verb.hpp>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "core/engine.hpp"
#include "core/session_state.hpp"

namespace ibvxx::shim {

/// Counts the call, decides whether it fails, and holds the engine's lock until it returns. A
/// device's function has this pattern:
///
///   ibv_pd* alloc_pd(call& c, ibv_context* context) {
///     auto* owner = c.use<sim_context>(context);  // null: the finding is written
///     if (!owner || c.failing()) return c.refuse_pointer();
///
/// Costs: constructing one is constant, and allocates only for the trace. While no session is
/// in force, it takes no lock.
///
/// A thread may be cancelled, and a rule's action may throw, where the lock is released: both
/// unwind through the call, which leaves nothing behind.
class call {
 public:
  /// Throws what a rule's action throws.
  call(verb v, const void* object) : call(v, object, begun{}) {
    if (engine::call_depth == 1 && !engine::idle()) begin();
  }
  /// The same for a function that must not throw: an exception of a rule's action is a finding.
  enum class unthrowing { yes };
  call(verb v, const void* object, unthrowing) noexcept;
  /// For a part of a call that is counted elsewhere: takes the lock, counts nothing, and no rule
  /// matches it.
  enum class part { uncounted };
  call(verb v, part) noexcept;
  call(const call&) = delete;
  call& operator=(const call&) = delete;
  ~call();

  /// A session is in force, and no other intercepted call makes this one.
  [[nodiscard]] bool is_seen() const noexcept { return state_ != nullptr; }
  /// The call is passed to the real library: no session is in force, the session forwards, or
  /// another intercepted call makes this one. Never for an object of a session that has ended.
  /// intercept/intercept.hpp asks this for every verb.
  [[nodiscard]] bool forwarded() const noexcept {
    return state_ ? state_->forwards() && !stale_ : !stale_;
  }
  [[nodiscard]] verb which() const noexcept { return verb_; }
  [[nodiscard]] session_state& state() const noexcept { return *state_; }
  /// The number of the call in its session, from 1.
  [[nodiscard]] std::uint64_t index() const noexcept { return index_; }
  /// What the verb is called on: the handle, and its record where the ledger has one.
  [[nodiscard]] const void* object() const noexcept { return object_; }
  [[nodiscard]] record* subject() const noexcept { return subject_; }

  // Rules.

  /// A rule makes the call fail before it has an effect.
  [[nodiscard]] bool failing() const noexcept {
    return fault_.fails && !fault_.after_effect && fault_.request == 0;
  }
  /// A rule refuses one request of the list.
  [[nodiscard]] bool refuses_some_request() const noexcept {
    return fault_.fails && fault_.request != 0;
  }
  /// A rule refuses this request of the list, the first being 1.
  [[nodiscard]] bool refuses_request(std::size_t place) noexcept {
    if (!fault_.fails || fault_.request != place) [[likely]]
      return false;
    state_->plan.fired(fault_);
    return true;
  }
  [[nodiscard]] int refusal_of_request() const noexcept { return fault_.code; }
  /// What a call returns after its effect: `code`, or the error that a rule has it report.
  [[nodiscard]] int concluded(int code = 0) const noexcept {
    return code == 0 && fault_.fails && fault_.after_effect ? fault_.code : code;
  }

  // Objects.

  /// The live simulated object of this kind behind a handle; otherwise adds a finding and returns
  /// null.
  template <class Sim>
  [[nodiscard]] Sim* use(const void* handle) noexcept {
    record* object = check(Sim::kind, handle, false);
    return object ? static_cast<Sim*>(object->storage.get()) : nullptr;
  }
  /// use() for a handle that the call destroys: an object destroyed before is a double destroy.
  template <class Sim>
  [[nodiscard]] Sim* ending(const void* handle) noexcept {
    record* object = check(Sim::kind, handle, true);
    return object ? static_cast<Sim*>(object->storage.get()) : nullptr;
  }
  [[nodiscard]] record* record_of(const void* handle) const noexcept {
    return state_->objects.find(handle);
  }
  /// An argument that libibverbs dereferences: where it is null, adds a finding and returns false.
  [[nodiscard]] bool given(const void* argument, const char* name) noexcept {
    if (argument) [[likely]]
      return true;
    refuse_null(name);
    return false;
  }
  /// Whether the device of an object was unplugged.
  [[nodiscard]] bool lost(const void* handle) const noexcept {
    const record& object = *record_of(handle);
    return object.lost && *object.lost;
  }

  /// Records a new object, whose storage holds its `handle`.
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
  /// Decides a destroy. Returns 0, or the errno of a destroy that leaves the object alive: the
  /// injected one, or EBUSY while other objects use it.
  [[nodiscard]] int may_destroy(const void* handle) noexcept;
  /// Records that the object was destroyed.
  void retire(const void* handle) noexcept;
  /// may_destroy(), and on 0 retire().
  [[nodiscard]] int destroy(const void* handle) noexcept {
    const int code = may_destroy(handle);
    if (code == 0) retire(handle);
    return code;
  }
  /// For a verb that returns nothing: the object is destroyed even while others use it.
  void destroy_regardless(const void* handle) noexcept;

  // The lock.

  /// Releases the engine's lock while it exists, also where the thread is unwound: for a call that
  /// waits or runs real code. The session's state stays valid, though the session may have ended
  /// meanwhile.
  class released {
   public:
    explicit released(call& of) noexcept : call_(of) {
      of.hold_session();
      of.lock_.unlock();
    }
    released(const released&) = delete;
    released& operator=(const released&) = delete;
    ~released() { call_.lock_.lock(); }

   private:
    call& call_;
  };
  /// Waits on `condition` until `done()` or until the session's deadline for blocking destroys;
  /// false if the deadline passed.
  template <class Done>
  [[nodiscard]] bool wait(std::condition_variable_any& condition, Done&& done) {
    return wait(condition, state_->destroy_deadline, done);
  }
  template <class Done>
  [[nodiscard]] bool wait(std::condition_variable_any& condition,
                          std::chrono::milliseconds deadline, Done&& done) {
    hold_session();
    return condition.wait_for(lock_, deadline, done);
  }

  // What a refused call returns: the injected errno, else `otherwise`.

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
  /// The return value by the convention in the verb's row, and errno where that sets it. For verbs
  /// that return a number.
  [[nodiscard]] int refuse_by_convention() const noexcept;
  /// The return value of a verb that the kernel answers: the code. A failure sets errno as well
  /// (measured). Failures that libibverbs or a provider detects leave errno unchanged.
  [[nodiscard]] static int from_kernel(int code) noexcept {
    if (code != 0) errno = code;
    return code;
  }

  // Findings.

  /// Adds a finding; `about`: the object concerned.
  void found(finding_kind kind, std::string text, const record* about = nullptr) noexcept;
  /// "ibv_destroy_cq (call 17)": how findings begin.
  [[nodiscard]] std::string here() const;
  /// Adds the finding for an argument that is null.
  void refuse_null(const char* argument) noexcept;
  /// Adds the finding for a handle that belongs to no live object of this kind.
  void refuse_handle(object_kind kind, const void* handle, const record* object,
                     bool ending) noexcept;

 private:
  [[nodiscard]] record* check(object_kind kind, const void* handle, bool ending) noexcept {
    // Usually the handle is the verb's subject, whose record is known: no look-up.
    record* object = handle == object_ && subject_ ? subject_
                     : state_ && handle            ? state_->objects.find(handle)
                                                   : nullptr;
    if (object && object->kind == kind && object->live) [[likely]]
      return object;
    refuse_handle(kind, handle, object, ending);
    return nullptr;
  }
  struct begun {};
  call(verb v, const void* object, begun) noexcept : verb_(v), object_(object) {
    ++engine::call_depth;
  }
  void begin();
  void begin_counted();
  void run_action();
  void hold_session() noexcept;
  /// Adds a finding where another thread is in a call on an object that one thread at a time may
  /// use.
  void watch(const void* object) noexcept;

  std::unique_lock<engine_lock> lock_{};
  session_state* state_ = nullptr;
  std::shared_ptr<session_state> held_{};  // once the lock was released
  record* pinned_ = nullptr;               // then: what the call is on, in the ledger's memory
  verb verb_;
  const void* object_ = nullptr;
  record* subject_ = nullptr;
  bool stale_ = false;                           // the object is of a session that has ended
  bool destroyed_but_reported_failure_ = false;  // of the object: an earlier destroy took effect
  bool watched_ = false;
  decision fault_{};
  std::uint64_t index_ = 0;
};

}  // namespace ibvxx::shim
