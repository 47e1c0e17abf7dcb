// The requester's half of the data path. Everything here needs the engine's lock.
#pragma once

#include <cstdint>

#include "core/session_state.hpp"
#include "device/queue_pair.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

/// The outcome of execute().
enum class progress : std::uint8_t {
  done,     ///< completed, with success or with an error
  waiting,  ///< stays in the queue
};

/// Carries out one request on a queue pair in RTS.
[[nodiscard]] progress execute(session_state& state, sim_qp& qp, const send_request& request);

}  // namespace ibvxx::shim
