// The operations of a context for posting.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_posting_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
