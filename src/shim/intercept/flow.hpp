// The operations of a context for flows, flow actions and counters.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_flow_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
