// The operations of a context for memory regions.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_memory_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
