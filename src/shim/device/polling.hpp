// Polling: ibv_poll_cq, and the iteration over extended queues.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"
#include "device/completion_queue.hpp"

namespace ibvxx::shim {

/// Sets the functions of an extended CQ that read a completion, for the details requested at its
/// creation.
void install_readers(sim_cq& queue, std::uint64_t details) noexcept;

namespace device {

int poll_cq(call& c, ibv_cq* cq, int room, ibv_wc* out);
int start_poll(call& c, ibv_cq_ex* cq, ibv_poll_cq_attr* attributes);
int next_poll(call& c, ibv_cq_ex* cq);
void end_poll(call& c, ibv_cq_ex* cq);

}  // namespace device

}  // namespace ibvxx::shim
