// Memory windows: binding and invalidating. Everything here needs the engine's lock.
#pragma once

#include <cstdint>

#include "device/device.hpp"
#include "device/queue_pair.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

/// Carries out IBV_WR_BIND_MW; false where the window, the region or the range is not right.
[[nodiscard]] bool bind(sim_qp& qp, const send_request& request) noexcept;
/// Ends the access of a window of type 2, by its key; false where there is none. `through`: the
/// queue pair that a remote request arrived at, which must be the window's; null for a local one.
[[nodiscard]] bool invalidate(sim_device& device, std::uint32_t rkey,
                              const sim_qp* through) noexcept;

}  // namespace ibvxx::shim
