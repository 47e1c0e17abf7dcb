// Batches of ibv_wr_* calls.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"

namespace ibvxx::shim {

/// Puts the shim's operations into an extended queue pair that was just made.
void intercept_qp(call& c, ibv_qp* made);

}  // namespace ibvxx::shim
