// The operations of a context for completion queues.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_completion_queue_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
