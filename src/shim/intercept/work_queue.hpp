// The operations of a context for work queues and indirection tables.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"

namespace ibvxx::shim {

void install_work_queue_operations(verbs_context& context) noexcept;
/// Puts the shim's operations into a work queue that was just made.
void intercept_wq(call& c, ibv_wq* made);

}  // namespace ibvxx::shim
