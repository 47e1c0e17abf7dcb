#include "core/session_state.hpp"

#include <stdexcept>

namespace ibvxx::shim {

void session_state::apply(const session_options& options) {
  if (options.destroy_deadline < std::chrono::milliseconds::zero())
    throw std::logic_error("shim: session_options.destroy_deadline is below 0");
  strict = options.strict;
  trace.set_capacity(options.trace_capacity);
  destroy_deadline = options.destroy_deadline;
  if (!options.call_stacks) return;
  objects.keep_call_stacks();
  findings.keep_call_stacks();
}

}  // namespace ibvxx::shim
