// How a session looks at the program.
#pragma once

#include <chrono>

namespace ibvxx::shim {

/// How a session looks at the program.
struct session_options {
  /// Findings tell where in the program the object was made and destroyed, and where it was
  /// misused. Costs a stack walk for each object.
  bool call_stacks = false;
  /// Also finds misuse that the device itself answers with an error, which tests of error handling
  /// commit on purpose (wrong_state, wrong_memory), and what is a mistake in most programs only
  /// (buffer_reused). Costs a look at every posted request.
  bool strict = false;
  /// How long a destroy that waits for an acknowledgement is let wait before it is reported:
  /// another thread may be about to give it.
  std::chrono::milliseconds destroy_deadline{200};
};

}  // namespace ibvxx::shim
