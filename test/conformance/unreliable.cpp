// Unreliable connections: what works, and what is lost without a word.
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

connection_options unreliable() {
  connection_options options;
  options.type = IBV_QPT_UC;
  return options;
}

void working(const setting& s) {
  connection c(s, unreliable());
  for (const std::size_t size : {std::size_t{0}, std::size_t{64}, std::size_t{3000}}) {
    c.requester.memory.fill(0, size, 3);
    request(1, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, size)})
        .remote(c.responder.memory.address(), c.responder.memory->rkey)
        .post(c.requester.qp.get());
    const std::string told = completions(s, c.requester.cq.get(), 1);
    const bool arrived =
        wait_for(s.world.patience(), [&] { return c.responder.memory.filled(0, size, 3); });
    probe("write-" + std::to_string(size), told + (arrived ? ", arrived" : ", lost"));
    post_receive(c.responder.qp.get(), 2, {c.responder.memory.piece(0, 8192)});
    request(3, IBV_WR_SEND, {c.requester.memory.piece(0, size)}).post(c.requester.qp.get());
    probe("send-" + std::to_string(size), completions(s, c.requester.cq.get(), 1));
    probe("receive-" + std::to_string(size), completions(s, c.responder.cq.get(), 1));
    post_receive(c.responder.qp.get(), 4, {c.responder.memory.piece(0, 8192)});
    request(5, IBV_WR_RDMA_WRITE_WITH_IMM, {c.requester.memory.piece(0, size)})
        .remote(c.responder.memory.address(), c.responder.memory->rkey)
        .immediate(7)
        .post(c.requester.qp.get());
    probe("write-with-imm-" + std::to_string(size), completions(s, c.requester.cq.get(), 1));
    probe("write-with-imm-" + std::to_string(size) + "-receiver",
          completions(s, c.responder.cq.get(), 1));
    post_receive(c.responder.qp.get(), 6, {c.responder.memory.piece(0, 8192)});
    request(7, IBV_WR_SEND_WITH_IMM, {c.requester.memory.piece(0, size)})
        .immediate(8)
        .post(c.requester.qp.get());
    probe("send-with-imm-" + std::to_string(size), completions(s, c.requester.cq.get(), 1));
    probe("send-with-imm-" + std::to_string(size) + "-receiver",
          completions(s, c.responder.cq.get(), 1));
  }
}

template <class Prepare>
void lose(const setting& s, const std::string& what, Prepare&& prepare,
          const connection_options& options = unreliable()) {
  connection c(s, options);
  c.responder.memory.fill(0, 64, 200);
  request r(1, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 64)});
  r.remote(c.responder.memory.address(), c.responder.memory->rkey);
  prepare(r, c);
  const int code = r.post(c.requester.qp.get());
  if (code != 0) return probe(what, code_name(code));
  const std::string requester = completions(s, c.requester.cq.get(), 1);
  const std::string responder = completions(s, c.responder.cq.get(), 0);
  probe(what, requester + ", " + name(state_of(c.requester.qp.get())) + "; responder " + responder +
                  ", " + name(state_of(c.responder.qp.get())));
  const std::string events = settled_async_events(s);
  if (events != "nothing") probe(what + "-events", events);
}

void losing(const setting& s) {
  const auto as = [](ibv_wr_opcode opcode) {
    return [opcode](request& r, connection&) { r.wr.opcode = opcode; };
  };
  lose(s, "read", as(IBV_WR_RDMA_READ));
  lose(s, "fetch_and_add", [](request& r, connection& c) {
    r.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    r.pieces = {c.requester.memory.piece(0, 8)};
    r.atomic(c.responder.memory.address(), c.responder.memory->rkey, 1, 0);
  });
  lose(s, "cmp_and_swp", [](request& r, connection& c) {
    r.wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    r.pieces = {c.requester.memory.piece(0, 8)};
    r.atomic(c.responder.memory.address(), c.responder.memory->rkey, 1, 0);
  });
  lose(s, "send-without-receive", as(IBV_WR_SEND));
  lose(s, "send-with-imm-without-receive", as(IBV_WR_SEND_WITH_IMM));
  lose(s, "write-with-imm-without-receive", as(IBV_WR_RDMA_WRITE_WITH_IMM));
  lose(s, "send-too-long", [](request& r, connection& c) {
    post_receive(c.responder.qp.get(), 9, {c.responder.memory.piece(0, 8)});
    r.wr.opcode = IBV_WR_SEND;
  });
  lose(s, "receive-unknown-lkey", [](request& r, connection& c) {
    post_receive(c.responder.qp.get(), 9, {{c.responder.memory.address(), 64, 0x7fffff01}});
    r.wr.opcode = IBV_WR_SEND;
  });
  lose(s, "write-bad-rkey", [](request& r, connection&) { r.wr.wr.rdma.rkey ^= 1; });
  lose(s, "write-beyond", [](request& r, connection& c) {
    r.remote(c.responder.memory.address((1 << 16) - 8), c.responder.memory->rkey);
  });
  lose(s, "write-bad-lkey", [](request& r, connection&) { r.pieces[0].lkey = 0x7fffff01; });
  connection_options closed = unreliable();
  closed.access = 0;
  lose(
      s, "write-qp-without-access", [](request&, connection&) {}, closed);
  lose(s, "peer-in-ERR",
       [](request&, connection& c) { modify_state(c.responder.qp.get(), IBV_QPS_ERR); });
  lose(s, "peer-in-RESET",
       [](request&, connection& c) { modify_state(c.responder.qp.get(), IBV_QPS_RESET); });
  lose(s, "send-with-inv-bad-key", [](request& r, connection& c) {
    post_receive(c.responder.qp.get(), 9, {c.responder.memory.piece(0, 64)});
    r.wr.opcode = IBV_WR_SEND_WITH_INV;
    r.wr.invalidate_rkey = 0x7fffff01;
  });
  // A lost message does not break the connection.
  connection c(s, unreliable());
  request(1, IBV_WR_SEND, {c.requester.memory.piece(0, 8)}).post(c.requester.qp.get());
  collect(s, c.requester.cq.get(), 1);
  wait_for(s.world.silence(), [] { return false; });
  post_receive(c.responder.qp.get(), 2, {c.responder.memory.piece(0, 64)});
  request(3, IBV_WR_SEND, {c.requester.memory.piece(0, 16)}).post(c.requester.qp.get());
  probe("send-after-a-lost-one", completions(s, c.responder.cq.get(), 1));
}

}  // namespace

void probe_unreliable(const setting& s) {
  working(s);
  losing(s);
}

}  // namespace conformance
