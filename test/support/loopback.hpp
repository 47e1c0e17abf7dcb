// Two RC queue pairs of one simulated device, connected to each other by the toolkit's own steps.
#pragma once

#include <cstddef>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <span>

#include "connect.hpp"

namespace ibvxx::test {

struct loopback {
  unique_context context = or_throw(open_device(or_throw(get_device_list())[0]));
  unique_pd pd = or_throw(alloc_pd(context));
  unique_comp_channel channel = or_throw(create_comp_channel(context));
  unique_cq send_cq = or_throw(create_cq(context, 64, channel.get()));
  unique_cq receive_cq = or_throw(create_cq(context, 64, channel.get()));
  std::byte memory[256] = {};
  unique_mr region =
      or_throw(reg_mr(pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  unique_qp a = make_rc_qp(pd, send_cq, receive_cq), b = make_rc_qp(pd, send_cq, receive_cq);

  loopback() {
    const qp_address from_a = address_of(a, 0x111), from_b = address_of(b, 0x222);
    connect(a, from_a, from_b);
    connect(b, from_b, from_a);
  }

  /// Waits for the next completion event and reads it, unacknowledged: the queue that it names.
  [[nodiscard]] ibv_cq* next_event() const {
    ibv_cq* named = nullptr;
    void* queue_context = nullptr;
    if (::ibv_get_cq_event(channel.get(), &named, &queue_context) != 0)
      or_throw(result<void>(failure(error(verb::get_cq_event, errno))));
    return named;
  }

  /// One message from a to b.
  void send(std::uint64_t wr_id) {
    ibv_sge piece{reinterpret_cast<std::uint64_t>(memory), 16, region->lkey};
    ibv_recv_wr receive{wr_id, nullptr, &piece, 1};
    or_throw(post_recv(b, &receive));
    ibv_send_wr request{};
    request.wr_id = wr_id;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    or_throw(post_send(a, &request));
  }
};

}  // namespace ibvxx::test
