// The use of a device whose list was freed.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"

namespace ibvxx::shim {

/// A device that is not open is valid as long as a list that names it, an open one as long as its
/// contexts (ibv_get_device_list(3)). Adds a finding if no list of the session is alive and the
/// device is not open. Costs: linear in the open contexts where no list is alive.
void find_freed_list(call& c, const ibv_device* device);

}  // namespace ibvxx::shim
