// Two RC queue pairs of one context, connected to each other.
#pragma once

#include <cstdint>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>

/// They belong to the context. What `a` sends, `b` receives, and the other way round.
struct loopback {
  ibv_qp* a;
  ibv_qp* b;
};

inline ibv_qp* make_qp(ibvxx::rdma_context& context, ibv_cq* cq) {
  ibv_qp_init_attr attributes{};
  attributes.qp_type = IBV_QPT_RC;
  attributes.send_cq = attributes.recv_cq = cq;
  attributes.cap = {.max_send_wr = 16,
                    .max_recv_wr = 16,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = 0};
  return ibvxx::or_throw(context.create_qp(attributes));
}

inline void connect(const ibvxx::rdma_context& context, ibv_qp* qp, const ibvxx::qp_address& local,
                    const ibvxx::qp_address& peer) {
  const auto sgid_index = static_cast<int>(context.gid().entry.gid_index);
  ibvxx::or_throw(ibvxx::qp_to_init(
      qp, {.port = context.port(), .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ}));
  ibvxx::or_throw(
      ibvxx::qp_to_rtr(qp, ibvxx::or_throw(ibvxx::rtr_options(
                               local, peer, {.port = context.port(), .sgid_index = sgid_index}))));
  ibvxx::or_throw(ibvxx::qp_to_rts(qp, {.sq_psn = local.psn}));
}

inline loopback make_loopback(ibvxx::rdma_context& context, ibv_cq* cq) {
  const loopback pair{make_qp(context, cq), make_qp(context, cq)};
  const auto address = [&context](ibv_qp* qp, std::uint32_t psn) {
    return ibvxx::local_address(qp, psn, context.port_attributes(), context.gid().entry.gid);
  };
  const ibvxx::qp_address of_a = address(pair.a, 0x111), of_b = address(pair.b, 0x222);
  connect(context, pair.a, of_a, of_b);
  connect(context, pair.b, of_b, of_a);
  return pair;
}

inline void post_receive(ibv_qp* qp, std::uint64_t wr_id, ibv_sge piece) {
  ibv_recv_wr request{};
  request.wr_id = wr_id;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibvxx::or_throw(ibvxx::post_recv(qp, &request));
}

inline void post_message(ibv_qp* qp, std::uint64_t wr_id, ibv_sge piece) {
  ibv_send_wr request{};
  request.wr_id = wr_id;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibvxx::or_throw(ibvxx::post_send(qp, &request));
}
