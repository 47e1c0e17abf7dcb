// The operations of a context for shared receive queues.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_receive_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
