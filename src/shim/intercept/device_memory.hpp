// The operations of a context for memory on the device.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"

namespace ibvxx::shim {

void install_device_memory_operations(verbs_context& context) noexcept;
/// Puts the shim's operations into device memory that was just made.
void intercept_dm(call& c, ibv_dm* made);

}  // namespace ibvxx::shim
