// The use of a device whose list was freed.
#pragma once

#include "core/call.hpp"

namespace ibvxx::shim {

/// A device that is not open is valid as long as a list that names it (ibv_get_device_list(3)).
/// Adds a finding if no list of the session is alive. `device`: the name, for the finding.
void find_freed_list(call& c, const char* device);

}  // namespace ibvxx::shim
