// Findings that are left when the process exits: of the session of the environment, and of a
// session that exit() did not destroy.
#include <unistd.h>

#include <cstdio>
#include <ibvxx/shim/session.hpp>
#include <vector>

#include "core/engine.hpp"
#include "session/last_findings.hpp"

namespace ibvxx::shim {
namespace {

/// Runs after the handlers of atexit(), the destructors of static objects and the destructor
/// functions of the program, which may call verbs. Those of shared libraries come later.
[[gnu::destructor(101)]] void report_uncollected() {
  const engine::suppress_interception quiet;
  // A child of vfork() ends with _exit(), and does not come here.
  if (!engine::in_session_of_this_process()) return;
  const std::vector<finding> all = find_last();
  if (all.empty()) return;
  write_findings(all);
  std::fprintf(stderr, "ibvxx-shim: the process exits with %zu finding(s): status %d\n", all.size(),
               exit_status_of_findings);
  std::fflush(nullptr);
  ::_exit(exit_status_of_findings);
}

}  // namespace
}  // namespace ibvxx::shim
