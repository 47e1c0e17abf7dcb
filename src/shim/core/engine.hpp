// The one session of the process, and the lock that guards it.
//
// The lock rule: the engine's lock guards session_state and every simulated object. It is held
// while a simulated device answers. It is released before code of the program or of another library
// runs (actions, the real libibverbs, the C library's functions), and while a blocking verb waits.
// System calls of the shim's own that are made under it cannot block (core/own_calls.hpp).
//
// The child of a fork has no session: its parent's threads are gone, and with them what they were
// about to do. Its calls go to the real libraries, but for verbs on its parent's simulated objects,
// which are refused. IBVXX_SHIM gives it a session of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "core/engine_lock.hpp"
#include "core/session_state.hpp"

namespace ibvxx::shim::engine {

/// Begins a session. Throws std::logic_error while one is in force.
void begin(std::unique_ptr<session_state> state);
/// Ends the session in force. The memory of its objects is kept for a while (retired_objects in
/// core/engine.cpp), so that a late use is recognised.
void end() noexcept;

/// The lock and the session that it guards, for sessions and sweeps. Throws std::logic_error where
/// no session is in force.
struct access {
  std::unique_lock<engine_lock> lock;
  session_state& state;
};
[[nodiscard]] access lock_session();

/// The engine's lock.
[[nodiscard]] engine_lock& lock() noexcept;
/// The session in force, or null. Begins the ambient session where the environment asks for one.
/// Needs the lock.
[[nodiscard]] const std::shared_ptr<session_state>& current() noexcept;
/// The same without beginning one.
[[nodiscard]] const std::shared_ptr<session_state>& current_or_none() noexcept;
/// Whether the handle was an object's of a session that has ended, or of the process that this one
/// was forked from. False for objects whose memory is no longer kept. Needs the lock.
[[nodiscard]] bool is_retired(const void* handle) noexcept;
/// "CQ#2 of sim0 after its session ended", for such an object. Needs the lock.
[[nodiscard]] std::string describe_retired(const void* handle);

/// Whether a call needs no more than to be passed on: no session is in force, or will be for the
/// environment's sake, and none has left objects. Needs no lock: the check that comes before a
/// call.
[[nodiscard]] bool idle() noexcept;
/// Whether a session may be in force. Needs no lock.
[[nodiscard]] bool in_session() noexcept;
/// in_session() for functions that a child calls between fork and exec: false in the child of a
/// vfork, which has its parent's memory. Costs: a system call in a session.
[[nodiscard]] bool in_session_of_this_process() noexcept;
/// Whether that session simulates devices. Needs no lock.
[[nodiscard]] bool simulates() noexcept;
/// Counts the sessions of the process: what a thread caches of one is invalid in the next.
[[nodiscard]] std::uint64_t generation() noexcept;

/// Makes the session of a program that begins none itself, or returns null. Called once in a
/// process, at the first verb (session/ambient.cpp).
using ambient_session = std::unique_ptr<session_state> (*)();
void set_ambient_session(ambient_session make) noexcept;

/// A lock that calls take beside the engine's. A fork holds it as well, so that the child finds
/// what it guards in a consistent state. Has static storage duration.
struct fork_guard {
  using action = void (*)() noexcept;
  action lock;
  action unlock;
  fork_guard* next = nullptr;
};
/// For constructors of priority 101.
void guard_forks(fork_guard& guard) noexcept;

/// The nesting depth of calls on this thread. Only the outermost is intercepted.
inline constinit thread_local int call_depth = 0;

/// While it exists, the calls of this thread are not intercepted: they are the shim's own.
class suppress_interception {
 public:
  suppress_interception() noexcept { ++call_depth; }
  suppress_interception(const suppress_interception&) = delete;
  suppress_interception& operator=(const suppress_interception&) = delete;
  ~suppress_interception() { --call_depth; }
};

}  // namespace ibvxx::shim::engine
