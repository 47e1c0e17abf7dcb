// The operations of a context for memory windows.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_memory_window_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
