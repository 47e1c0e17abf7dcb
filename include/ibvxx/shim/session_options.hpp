// The options of a session.
#pragma once

#include <chrono>
#include <cstddef>

namespace ibvxx::shim {

/// What a session records and checks.
struct session_options {
  /// Findings include the call stacks of the creation, the destroy and the misuse of the object.
  /// Costs a stack walk for each object.
  bool call_stacks = false;
  /// Also reports misuse that the device itself answers with an error, which tests of error
  /// handling cause on purpose (wrong_state, wrong_memory), and what is a mistake in most programs
  /// only (buffer_reused). Costs a check of every posted request.
  bool strict = false;
  /// How long a destroy may wait for an acknowledgement before it is reported: another thread may
  /// be about to acknowledge.
  std::chrono::milliseconds destroy_deadline{200};
  /// How many calls session::trace() returns: the latest ones. SIZE_MAX: every call, for which
  /// memory grows with their number.
  std::size_t trace_capacity = 65536;
};

}  // namespace ibvxx::shim
