// The operations of a context for changing queue pairs.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_qp_state_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
