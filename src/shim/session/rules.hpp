// The rules of a session: how they begin, and those that had no effect.
#pragma once

#include "core/session_state.hpp"

namespace ibvxx::shim {

/// Adds a finding for each rule and each hold that had no effect.
void find_unfired(session_state& state);

}  // namespace ibvxx::shim
