#include "core/session_state.hpp"

#include <cstdint>
#include <stdexcept>

#include "core/verb_table.hpp"

namespace ibvxx::shim {

void session_state::apply(const session_options& options) {
  if (options.destroy_deadline < std::chrono::milliseconds::zero())
    throw std::logic_error("shim: session_options.destroy_deadline is below 0");
  strict = options.strict;
  destroy_deadline = options.destroy_deadline;
  if (!options.call_stacks) return;
  objects.keep_call_stacks();
  findings.keep_call_stacks();
}

record* session_state::subject_of(verb call, const void* object) const noexcept {
  const verb_row& row = row_of(call);
  if (!row.has_subject) return nullptr;
  if (row.at == operation::c_library)
    return objects.find_descriptor(static_cast<int>(reinterpret_cast<std::intptr_t>(object)));
  return object ? objects.find(object) : nullptr;
}

}  // namespace ibvxx::shim
