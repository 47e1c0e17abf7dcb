// Fork support.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"

namespace ibvxx::shim::device {

int fork_init(call& c);
ibv_fork_status is_fork_initialized(call& c);

}  // namespace ibvxx::shim::device
