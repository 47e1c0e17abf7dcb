// The operations of a context for queries of devices and ports.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_query_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
