// The operations that verbs.h calls through a context.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"

namespace ibvxx::shim {

/// Puts the shim's operations into a context that has none.
void install_operations(verbs_context& context) noexcept;
/// Puts them into a context that was just opened: all into a simulated one, those that it has into
/// a real one.
void intercept_context(call& c, ibv_context* opened);

}  // namespace ibvxx::shim
