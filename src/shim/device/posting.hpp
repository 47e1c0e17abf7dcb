// Posting to send queues, receive queues and shared receive queues.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>

#include "core/call.hpp"
#include "device/queue_pair.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

/// How many more requests the send queue has slots for.
[[nodiscard]] std::size_t send_slots_left(const sim_qp& qp) noexcept;

/// Converts a work request to the device's form and looks up its objects. False, with a finding,
/// for an invalid one.
[[nodiscard]] bool translate(call& c, const sim_qp& qp, const ibv_send_wr& wr,
                             send_request& request) noexcept;

/// 0 if the queue pair accepts sends; EINVAL before RTS (measured) and for an XRC receiver.
[[nodiscard]] int check_sending(const sim_qp& qp) noexcept;

namespace device {

int post_send(call& c, ibv_qp* handle, ibv_send_wr* list, ibv_send_wr** bad);
int bind_mw(call& c, ibv_qp* handle, ibv_mw* mw, ibv_mw_bind* bind);
int post_recv(call& c, ibv_qp* handle, ibv_recv_wr* list, ibv_recv_wr** bad);
int post_srq_recv(call& c, ibv_srq* handle, ibv_recv_wr* list, ibv_recv_wr** bad);

}  // namespace device

}  // namespace ibvxx::shim
