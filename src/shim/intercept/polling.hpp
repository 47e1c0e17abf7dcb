// The operations of a context for polling.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"

namespace ibvxx::shim {

void install_polling_operations(verbs_context& context) noexcept;
/// Puts the shim's operations into an extended queue that was just made.
void intercept_cq(call& c, ibv_cq_ex* made);

}  // namespace ibvxx::shim
