// Two RC queue pairs of one simulated device, connected to each other by the toolkit's own steps.
#pragma once

#include <cstddef>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <span>

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
  unique_qp a = create(), b = create();

  loopback() {
    const auto port = or_throw(query_port(context, 1));
    const auto gid = or_throw(query_gid_ex(context, 1, 1)).gid;
    const qp_address from_a = local_address(a, 0x111, port, gid),
                     from_b = local_address(b, 0x222, port, gid);
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

 private:
  unique_qp create() {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = send_cq.get();
    attributes.recv_cq = receive_cq.get();
    attributes.cap = {16, 16, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    return or_throw(create_qp(pd, attributes));
  }
  static void connect(unique_qp& qp, const qp_address& local, const qp_address& remote) {
    or_throw(qp_to_init(qp, {.access = IBV_ACCESS_REMOTE_WRITE}));
    or_throw(qp_to_rtr(qp, or_throw(rtr_options(local, remote, {.sgid_index = 1}))));
    or_throw(qp_to_rts(qp, {.sq_psn = local.psn}));
  }
};

}  // namespace ibvxx::test
