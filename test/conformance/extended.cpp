// The extended interfaces: posting through ibv_wr_*, polling through ibv_start_poll.
#include <cstring>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

struct destroy_extended {
  void operator()(ibv_cq_ex* cq) const { ibv_destroy_cq(ibv_cq_ex_to_cq(cq)); }
};
using owned_cq_ex = std::unique_ptr<ibv_cq_ex, destroy_extended>;

/// A requester with both extended interfaces and an ordinary responder.
struct rig {
  explicit rig(const setting& s)
      : responder(s, {}, nullptr), memory(s, 1 << 16), cq(make(s)), qp(make_requester(s)) {
    bring_to(s, responder.qp.get(), IBV_QPS_RTS, qp->qp_num);
    bring_to(s, qp.get(), IBV_QPS_RTS, responder.qp->qp_num);
    ex = ibv_qp_to_qp_ex(qp.get());
    need(ex != nullptr, "ibv_qp_to_qp_ex");
  }

  static owned_cq_ex make(const setting& s) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 64;
    attr.wc_flags = IBV_WC_STANDARD_FLAGS;
    owned_cq_ex made(ibv_create_cq_ex(s.context, &attr));
    need(made != nullptr, "ibv_create_cq_ex");
    return made;
  }
  owned<ibv_qp> make_requester(const setting& s) {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq.get());
    attr.cap = {16, 16, 4, 4, 64};
    attr.qp_type = IBV_QPT_RC;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = s.pd;
    attr.send_ops_flags = (1U << 10) - 1;
    owned<ibv_qp> made(ibv_create_qp_ex(s.context, &attr));
    need(made != nullptr, "ibv_create_qp_ex");
    return made;
  }
  void begin(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) const {
    ibv_wr_start(ex);
    ex->wr_id = id;
    ex->wr_flags = flags;
  }

  side responder;
  region memory;
  owned_cq_ex cq;
  owned<ibv_qp> qp;
  ibv_qp_ex* ex = nullptr;
};

/// The next completion in full.
std::string next(const setting& s, const rig& r) {
  ibv_poll_cq_attr attr{};
  if (!wait_for(s.world.patience(), [&] { return ibv_start_poll(r.cq.get(), &attr) == 0; }))
    return "missing";
  ibv_cq_ex* const cq = r.cq.get();
  std::string text = "wr " + std::to_string(cq->wr_id) + " " + name(cq->status);
  if (cq->status == IBV_WC_SUCCESS) {
    const unsigned opcode = ibv_wc_read_opcode(cq);
    text += " " + wc_opcode_name(opcode);
    if ((opcode & IBV_WC_RECV) != 0 || opcode == IBV_WC_RDMA_READ || opcode == IBV_WC_FETCH_ADD ||
        opcode == IBV_WC_COMP_SWAP)
      text += " len " + std::to_string(ibv_wc_read_byte_len(cq));
    const unsigned flags = ibv_wc_read_wc_flags(cq);
    if (flags != 0) text += " flags " + hex(flags);
  }
  text += ibv_wc_read_qp_num(cq) == r.qp->qp_num ? "" : " of another qp";
  ibv_end_poll(cq);
  return text;
}

void operations(const setting& s) {
  rig r(s);
  const auto rkey = r.responder.memory->rkey;
  const std::uint64_t there = r.responder.memory.address();
  const auto set = [&](std::size_t length) {
    ibv_wr_set_sge(r.ex, r.memory->lkey, r.memory.address(), static_cast<std::uint32_t>(length));
  };
  const auto finish = [&](const std::string& what, bool consumes = false) {
    probe_code(what, [&] { return ibv_wr_complete(r.ex); });
    probe(what + "-completion", next(s, r));
    if (consumes) probe(what + "-receiver", completions(s, r.responder.cq.get(), 1));
  };
  const auto receive = [&] {
    post_receive(r.responder.qp.get(), 50, {r.responder.memory.piece(0, 256)});
  };
  r.begin(1);
  ibv_wr_rdma_write(r.ex, rkey, there);
  set(64);
  finish("rdma_write");
  r.begin(2);
  ibv_wr_rdma_read(r.ex, rkey, there);
  set(64);
  finish("rdma_read");
  receive();
  r.begin(3);
  ibv_wr_rdma_write_imm(r.ex, rkey, there, htobe32(5));
  set(32);
  finish("rdma_write_imm", true);
  receive();
  r.begin(4);
  ibv_wr_send(r.ex);
  set(16);
  finish("send", true);
  receive();
  r.begin(5);
  ibv_wr_send_imm(r.ex, htobe32(6));
  set(16);
  finish("send_imm", true);
  r.begin(6);
  ibv_wr_atomic_cmp_swp(r.ex, rkey, there, 1, 2);
  set(8);
  finish("atomic_cmp_swp");
  r.begin(7);
  ibv_wr_atomic_fetch_add(r.ex, rkey, there, 1);
  set(8);
  finish("atomic_fetch_add");
  char text[] = "inlined";
  r.begin(8, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  ibv_wr_rdma_write(r.ex, rkey, there);
  ibv_wr_set_inline_data(r.ex, text, sizeof text);
  text[0] = 'X';
  finish("inline");
  probe("inline-data", std::memcmp(r.responder.memory.data(), "inlined", sizeof text) == 0
                           ? "as it was at posting"
                           : "changed");
  receive();
  r.begin(9);
  ibv_wr_send(r.ex);
  finish("send-nothing", true);
}

void lists(const setting& s) {
  rig r(s);
  const auto rkey = r.responder.memory->rkey;
  const std::uint64_t there = r.responder.memory.address();
  const auto write = [&](std::uint64_t id) {
    r.ex->wr_id = id;
    r.ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(r.ex, rkey, there);
    ibv_wr_set_sge(r.ex, r.memory->lkey, r.memory.address(), 8);
  };
  ibv_wr_start(r.ex);
  for (std::uint64_t id = 1; id <= 3; ++id) write(id);
  probe_code("three-at-once", [&] { return ibv_wr_complete(r.ex); });
  for (int i = 1; i <= 3; ++i) probe("three-at-once-completion-" + std::to_string(i), next(s, r));
  ibv_wr_start(r.ex);
  write(4);
  ibv_wr_abort(r.ex);
  wait_for(s.world.silence(), [] { return false; });
  ibv_poll_cq_attr attr{};
  probe_code("after-abort", [&] { return ibv_start_poll(r.cq.get(), &attr); });
  ibv_wr_start(r.ex);
  probe_code("complete-nothing", [&] { return ibv_wr_complete(r.ex); });
  ibv_wr_start(r.ex);
  write(5);
  probe_code("after-abort-and-nothing", [&] { return ibv_wr_complete(r.ex); });
  probe("after-abort-and-nothing-completion", next(s, r));
  // One that cannot be: the whole list is dropped.
  ibv_wr_start(r.ex);
  write(6);
  r.ex->wr_id = 7;
  ibv_wr_rdma_write(r.ex, rkey, there);
  const ibv_sge piece = r.memory.piece(0, 8);
  const ibv_sge five[] = {piece, piece, piece, piece, piece};
  ibv_wr_set_sge_list(r.ex, 5, five);
  const int code = ibv_wr_complete(r.ex);
  probe("too-many-pieces", code_name(code));
  wait_for(s.world.silence(), [] { return false; });
  probe_code("too-many-pieces-completions", [&] { return ibv_start_poll(r.cq.get(), &attr); });
  ibv_wr_start(r.ex);
  for (std::uint64_t id = 0; id < 64; ++id) write(id);
  probe("more-than-the-queue-holds", code_name(ibv_wr_complete(r.ex)));
  wait_for(s.world.silence(), [] { return false; });
  probe_code("more-than-the-queue-holds-completions",
             [&] { return ibv_start_poll(r.cq.get(), &attr); });
}

void polling(const setting& s) {
  rig r(s);
  ibv_poll_cq_attr attr{};
  probe_code("start_poll-empty", [&] { return ibv_start_poll(r.cq.get(), &attr); });
  ibv_wr_start(r.ex);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    r.ex->wr_id = id;
    r.ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(r.ex, r.responder.memory->rkey, r.responder.memory.address());
    ibv_wr_set_sge(r.ex, r.memory->lkey, r.memory.address(), 8);
  }
  ibv_wr_complete(r.ex);
  wait_for(s.world.patience(), [&] { return ibv_start_poll(r.cq.get(), &attr) == 0; });
  probe("start_poll", "wr " + std::to_string(r.cq->wr_id));
  // Wait until all three have completed.
  wait_for(s.world.silence(), [] { return false; });
  probe_code("next_poll-second", [&] { return ibv_next_poll(r.cq.get()); });
  probe("next_poll-second-is", "wr " + std::to_string(r.cq->wr_id));
  ibv_end_poll(r.cq.get());
  ibv_wc completion{};
  const int polled = ibv_poll_cq(ibv_cq_ex_to_cq(r.cq.get()), 1, &completion);
  probe("poll_cq-on-cq_ex", polled == 1 ? told(completion) : "nothing: " + std::to_string(polled));
  request(4, IBV_WR_RDMA_WRITE, {r.memory.piece(0, 8)})
      .remote(r.responder.memory.address(), r.responder.memory->rkey)
      .post(r.qp.get());
  probe("post_send-on-qp_ex", next(s, r));
  probe("get_cq_ex-round-trip",
        ibv_cq_ex_to_cq(r.cq.get())->cqe >= 64 ? "the same queue" : "another");
  // A plain queue pair's failure, seen through the extended queue.
  r.begin(5);
  ibv_wr_rdma_write(r.ex, r.responder.memory->rkey ^ 1, r.responder.memory.address());
  ibv_wr_set_sge(r.ex, r.memory->lkey, r.memory.address(), 8);
  ibv_wr_complete(r.ex);
  probe("bad-rkey", next(s, r));
}

/// The manual requires ibv_end_poll also after ibv_next_poll returned ENOENT.
void end_of_polling(const setting& s) {
  rig r(s);
  ibv_poll_cq_attr attr{};
  const auto write = [&](std::uint64_t id) {
    r.begin(id);
    ibv_wr_rdma_write(r.ex, r.responder.memory->rkey, r.responder.memory.address());
    ibv_wr_set_sge(r.ex, r.memory->lkey, r.memory.address(), 8);
    ibv_wr_complete(r.ex);
  };
  write(1);
  wait_for(s.world.patience(), [&] { return ibv_start_poll(r.cq.get(), &attr) == 0; });
  probe_code("next_poll-no-more", [&] { return ibv_next_poll(r.cq.get()); });
  ibv_end_poll(r.cq.get());
  probe_code("start_poll-after-no-more-and-end_poll",
             [&] { return ibv_start_poll(r.cq.get(), &attr); });
}

void limited_operations(const setting& s) {
  const auto cq = make_cq(s, 16);
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = attr.recv_cq = cq.get();
  attr.cap = {4, 4, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = s.pd;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  const auto qp = own(ibv_create_qp_ex(s.context, &attr));
  const ibv_qp_ex* const ex = ibv_qp_to_qp_ex(qp.get());
  probe("only-send-wr_send", ex->wr_send ? "set" : "NULL");
  probe("only-send-wr_rdma_write", ex->wr_rdma_write ? "set" : "NULL");
  probe("only-send-wr_atomic_fetch_add", ex->wr_atomic_fetch_add ? "set" : "NULL");
  probe("only-send-wr_start", ex->wr_start ? "set" : "NULL");
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  const auto basic = own(ibv_create_qp_ex(s.context, &attr));
  probe("pd-only-qp_to_qp_ex", basic && ibv_qp_to_qp_ex(basic.get()) ? "not NULL" : "NULL");
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  const auto plain = own(ibv_create_qp_ex(s.context, &attr));
  const ibv_qp_ex* const plain_ex = plain ? ibv_qp_to_qp_ex(plain.get()) : nullptr;
  probe("without-send-ops-qp_to_qp_ex", !plain_ex            ? "NULL"
                                        : plain_ex->wr_start ? "with operations"
                                                             : "without operations");
}

}  // namespace

void probe_extended(const setting& s) {
  operations(s);
  lists(s);
  polling(s);
  end_of_polling(s);
  limited_operations(s);
}

}  // namespace conformance
