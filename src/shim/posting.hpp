// What both ways of posting sends check: ibv_post_send and the ibv_wr_* functions.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "engine.hpp"
#include "sim_queue_pair.hpp"
#include "sim_work.hpp"

namespace ibvxx::shim {

/// How many more requests the send queue has slots for.
[[nodiscard]] std::size_t send_slots_left(const sim_qp& qp) noexcept;

/// The device's form of a request, with its objects looked up: false, with a finding, where one is
/// none.
[[nodiscard]] bool translate(call& c, const sim_qp& qp, const ibv_send_wr& wr,
                             send_request& request) noexcept;

/// Whether a queue pair takes requests at all: EINVAL before RTS (measured), otherwise 0.
[[nodiscard]] int check_sending(const sim_qp& qp) noexcept;

}  // namespace ibvxx::shim
