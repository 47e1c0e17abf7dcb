#include "core/call.hpp"

#include <infiniband/verbs.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "core/own_calls.hpp"
#include "core/thread_watch.hpp"
#include "core/verb_table.hpp"

namespace ibvxx::shim {
namespace {

constinit thread_local bool acting = false;  // inside a rule's action

/// While it exists, the calls of this thread are an action's: they are carried out, not counted,
/// and no rule matches them.
class action_scope {
 public:
  action_scope() noexcept { acting = true; }
  action_scope(const action_scope&) = delete;
  action_scope& operator=(const action_scope&) = delete;
  ~action_scope() {
    acting = false;
    engine::call_depth = outer_;
  }

 private:
  int outer_ = std::exchange(engine::call_depth, 0);
};

/// Verbs that send no command to the kernel, or that the kernel answers without the device.
[[nodiscard]] bool outlives_device(verb v) noexcept {
  return v == verb::close_device || v == verb::get_async_event || v == verb::ack_async_event ||
         v == verb::ack_cq_events || v == verb::poll_cq || v == verb::destroy_comp_channel;
}

}  // namespace

call::call(verb v, const void* object, unthrowing) noexcept : call(v, object, begun{}) {
  if (engine::call_depth != 1 || engine::idle()) return;
  try {
    begin();
  } catch (const std::exception& thrown) {
    found(finding_kind::unfired_rule,
          here() + " cannot throw: the exception of a rule's action is lost: " + thrown.what());
  } catch (...) {
    found(finding_kind::unfired_rule,
          here() + " cannot throw: the exception of a rule's action is lost");
  }
}

void call::begin() {
  if (!row_of(verb_).traced && watched_threads().on()) {
    watched_ = true;
    watched_threads().enter(verb_, object_);
  }
  lock_ = std::unique_lock(engine::lock());
  state_ = engine::current().get();
  if (state_) {
    begin_counted();
    return;
  }
  stale_ = object_ && engine::is_retired(object_);
  const std::string what = stale_ ? engine::describe_retired(object_) : std::string();
  lock_.unlock();  // the real call must not run under the lock
  if (stale_) write_line("ibvxx-shim: %s on %s: refused", name(verb_), what.c_str());
}

void call::begin_counted() {
  const verb_row& row = row_of(verb_);
  const bool followed = row.traced || (state_->traces_posts && !row.errnos.empty());
  if (!acting) {
    ++state_->calls;
    ++state_->counts[static_cast<std::size_t>(verb_)];
    call_address address{};
    if (state_->swept && followed) address = state_->swept->count(verb_);
    if (!state_->plan.rules().empty())
      fault_ = state_->plan.decide(verb_, state_->calls, object_, address);
  }
  index_ = state_->calls;
  if (watched_) watch(object_);
  record* const subject = subject_ = state_->subject_of(verb_, object_);
  const bool traced = !acting && followed;
  std::uint64_t place = 0;
  if (traced)
    place =
        state_->trace.add({index_, verb_, object_, subject ? subject->title : object_title(), 0});
  // A simulated object must not reach the real library.
  stale_ = state_->forwards() && !subject && object_ && engine::is_retired(object_);
  if (fault_.action) {
    run_action();
    subject_ = state_->subject_of(verb_, object_);  // the action may have destroyed or made objects
  }
  // The kernel answers every command with EIO once the device is unplugged, which the action may
  // have done.
  if (!fault_.fails && subject_ && subject_->lost && *subject_->lost && !outlives_device(verb_)) {
    fault_.fails = true;
    fault_.code = EIO;
  }
  if (traced && fault_.fails)
    state_->trace.set_injected(place, fault_.code != 0 ? std::abs(fault_.code) : -1);
}

void call::run_action() {
  const released quiet(*this);
  const action_scope inside;
  expect_unlocked("a rule's action");
  fault_.action();
}

call::call(verb v, part) noexcept : verb_(v) {
  if (engine::call_depth++ != 0) return;
  lock_ = std::unique_lock(engine::lock());
  state_ = engine::current_or_none().get();
  if (state_)
    index_ = state_->calls;
  else
    lock_.unlock();
}

call::~call() {
  if (watched_) watched_threads().leave();
  // What an action holds is freed here, while this thread's calls are not intercepted: an
  // intercepted operator delete takes the lock.
  fault_.action = nullptr;
  if (pinned_) state_->objects.unpin(*pinned_);
  held_.reset();
  --engine::call_depth;
}

void call::hold_session() noexcept {
  if (!state_ || held_) return;
  held_ = engine::current_or_none();
  if (subject_) state_->objects.pin(*subject_);
  pinned_ = subject_;
}

void call::found(finding_kind kind, std::string text, const record* about) noexcept {
  state_->findings.add(kind, std::move(text), about);
}

void call::watch(const void* object) noexcept {
  const record* own = object ? state_->objects.find(object) : nullptr;
  const void* const scope = own ? own->thread_scope : nullptr;
  if (!scope) return;
  for (const thread_watch::visit& other : watched_threads().others()) {
    const record* met = state_->objects.find(other.object);
    if (!met || met->thread_scope != scope || !state_->reported_races.insert(scope).second)
      continue;
    found(finding_kind::wrong_thread,
          here() + " on " + own->title + " while another thread is in " + name(other.call) +
              " on " + (met == own ? "it" : met->title.text()) + ", though " +
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
  if (!state_) return;  // no session: the constructor has printed a message
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
    destroyed_but_reported_failure_ = true;  // the program repeats a failed destroy
  } else {
    found(ending ? finding_kind::double_destroy : finding_kind::use_after_destroy,
          here() + " on " + object->title + ", " + origin(*object) + ", destroyed by call " +
              std::to_string(object->gone_by),
          object);
  }
}

int call::refuse_by_convention() const noexcept {
  switch (row_of(verb_).reports) {
    case convention::minus_one:
      return refuse_minus_one();
    case convention::negative_code:
      return -refuse_code();
    case convention::negative_value:
      return -1;
    case convention::rereg_code:
      errno = refuse_code();
      return IBV_REREG_MR_ERR_CMD;
    default:
      return refuse_code();
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
  // Only a context is destroyed regardless: ibv_close_device returns 0 in every case, and its
  // children dangle.
  if (object.kind == object_kind::context) return 0;
  // libibverbs itself counts the CQs of a channel, so this EBUSY does not set errno.
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
  if (!object.live) return;  // another thread destroyed it while this one waited
  object.destroyed_but_reported_failure = fault_.fails && fault_.after_effect;
  if (object.kind == object_kind::context && lost(handle))
    state_->objects.retire_tree(object, index_, [this](const record& gone) {
      if (state_->simulated) state_->simulated->drop(gone);
    });
  else
    state_->objects.retire(object, index_);
}

}  // namespace ibvxx::shim
