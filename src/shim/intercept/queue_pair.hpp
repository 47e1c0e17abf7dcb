// The operations of a context for queue pairs.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_queue_pair_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
