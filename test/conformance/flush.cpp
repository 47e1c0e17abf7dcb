// What becomes of outstanding work when a queue pair fails, is taken to ERR, to RESET or to SQD.
#include <algorithm>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

/// In the order of their numbers: sends and receives are flushed independently.
std::string sorted(const setting& s, ibv_cq* cq, std::size_t expected) {
  auto all = collect(s, cq, expected);
  std::sort(all.begin(), all.end(),
            [](const ibv_wc& a, const ibv_wc& b) { return a.wr_id < b.wr_id; });
  std::string text;
  for (const ibv_wc& one : all) text += (text.empty() ? "" : "; ") + told(one);
  return text.empty() ? "nothing" : text;
}

void receives(const setting& s) {
  const region memory(s, 4096);
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD})
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD}) {
      connection_options options;
      options.type = type;
      const auto cq = make_cq(s, 16);
      const auto qp = make_qp(s, cq.get(), options);
      bring_to(s, qp.get(), state, qp->qp_num, options);
      for (std::uint64_t id = 1; id <= 3; ++id) post_receive(qp.get(), id, {memory.piece(0, 64)});
      modify_state(qp.get(), IBV_QPS_ERR);
      probe(name(type) + "-receives-" + name(state) + "-ERR", completions(s, cq.get(), 3));
    }
}

/// Sends that wait for a peer which is not there, with receives beside them.
struct waiting {
  explicit waiting(const setting& s)
      : cq(make_cq(s, 64)), memory(s, 4096), qp(make_qp(s, cq.get())) {
    connection_options options;
    options.timeout = 0;
    bring_to(s, qp.get(), IBV_QPS_RTS, 0xfffff0, options);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      request r(id, IBV_WR_SEND, {memory.piece(0, 8)});
      if (id == 2) r.wr.send_flags = 0;
      r.post(qp.get());
    }
    for (std::uint64_t id = 11; id <= 12; ++id) post_receive(qp.get(), id, {memory.piece(0, 64)});
  }

  owned<ibv_cq> cq;
  region memory;
  owned<ibv_qp> qp;
};

void sends(const setting& s) {
  {
    waiting w(s);
    modify_state(w.qp.get(), IBV_QPS_ERR);
    // The second is unsignaled, and is flushed, too.
    probe("waiting-ERR", sorted(s, w.cq.get(), 5));
    request(4, IBV_WR_SEND, {w.memory.piece(0, 8)}).post(w.qp.get());
    probe("send-in-ERR", completions(s, w.cq.get(), 1));
    request unsignaled(5, IBV_WR_SEND, {w.memory.piece(0, 8)});
    unsignaled.wr.send_flags = 0;
    unsignaled.post(w.qp.get());
    probe("unsignaled-send-in-ERR", completions(s, w.cq.get(), 1));
    request(6, IBV_WR_SEND, {{1, 8, 0x7fffff01}}).post(w.qp.get());
    probe("send-with-unknown-lkey-in-ERR", completions(s, w.cq.get(), 1));
    post_receive(w.qp.get(), 13, {w.memory.piece(0, 64)});
    // Soft-RoCE flushes it only when something else happens on the queue pair.
    probe("receive-in-ERR", completions(s, w.cq.get(), 0));
    probe("ERR-ERR", code_name(modify_state(w.qp.get(), IBV_QPS_ERR)));
    probe("ERR-ERR-completions", completions(s, w.cq.get(), 0));
  }
  {
    waiting w(s);
    modify_state(w.qp.get(), IBV_QPS_RESET);
    probe("waiting-RESET", completions(s, w.cq.get(), 0));
    bring_to(s, w.qp.get(), IBV_QPS_RTS, w.qp->qp_num);
    post_receive(w.qp.get(), 21, {w.memory.piece(0, 64)});
    request(22, IBV_WR_SEND, {w.memory.piece(64, 8)}).post(w.qp.get());
    probe("used-again-after-RESET", sorted(s, w.cq.get(), 2));
  }
  {
    waiting w(s);
    modify_state(w.qp.get(), IBV_QPS_ERR);
    collect(s, w.cq.get(), 5);
    modify_state(w.qp.get(), IBV_QPS_RESET);
    bring_to(s, w.qp.get(), IBV_QPS_RTS, w.qp->qp_num);
    post_receive(w.qp.get(), 31, {w.memory.piece(0, 64)});
    request(32, IBV_WR_SEND, {w.memory.piece(64, 8)}).post(w.qp.get());
    probe("used-again-after-ERR-and-RESET", sorted(s, w.cq.get(), 2));
  }
}

/// What follows a request that failed, in one list and posted later.
void after_failure(const setting& s) {
  const auto chain = [&](const std::string& what, auto&& spoil) {
    connection c(s);
    for (std::uint64_t id = 11; id <= 12; ++id) post_receive(c.requester.qp.get(), id, {});
    for (std::uint64_t id = 1; id <= 4; ++id) {
      request r(id, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)});
      r.remote(c.responder.memory.address(), c.responder.memory->rkey);
      if (id == 2) spoil(r);
      if (id == 3) r.wr.send_flags = 0;
      r.post(c.requester.qp.get());
    }
    // Sends in their order; the receives are flushed whenever.
    const auto all = collect(s, c.requester.cq.get(), 6);
    std::string text;
    std::string receives;
    for (const ibv_wc& one : all) (one.wr_id < 10 ? text : receives) += "[" + told(one) + "]";
    probe(what + "-sends", text);
    probe(what + "-receives", receives);
    probe(what + "-state", name(state_of(c.requester.qp.get())));
  };
  chain("second-of-four-bad-rkey", [](request& r) { r.wr.wr.rdma.rkey ^= 1; });
  chain("second-of-four-bad-lkey", [](request& r) { r.pieces[0].lkey = 0x7fffff01; });
  // The responder's own requests are flushed when it enters ERR, without an event.
  connection c(s);
  for (std::uint64_t id = 11; id <= 12; ++id)
    post_receive(c.responder.qp.get(), id, {c.responder.memory.piece(0, 64)});
  request(1, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)})
      .remote(c.responder.memory.address(), c.responder.memory->rkey ^ 1)
      .post(c.requester.qp.get());
  collect(s, c.requester.cq.get(), 1);
  probe("responder-after-bad-rkey", completions(s, c.responder.cq.get(), 0));
  probe("responder-after-bad-rkey-state", name(state_of(c.responder.qp.get())));
  probe("responder-to-ERR-by-hand", code_name(modify_state(c.responder.qp.get(), IBV_QPS_ERR)));
  probe("responder-after-ERR-by-hand", completions(s, c.responder.cq.get(), 0));
}

void keeps_completions(const setting& s) {
  for (const ibv_qp_state state : {IBV_QPS_ERR, IBV_QPS_RESET}) {
    connection c(s);
    post_receive(c.responder.qp.get(), 3, {c.responder.memory.piece(0, 64)});
    for (std::uint64_t id = 1; id <= 2; ++id)
      request(id, id == 1 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, {c.requester.memory.piece(0, 8)})
          .remote(c.responder.memory.address(), c.responder.memory->rkey)
          .post(c.requester.qp.get());
    collect(s, c.responder.cq.get(), 1);
    wait_for(s.world.silence(), [] { return false; });
    modify_state(c.requester.qp.get(), state);
    probe("completions-there-before-" + name(state), completions(s, c.requester.cq.get(), 2));
  }
  connection c(s);
  request(1, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)})
      .remote(c.responder.memory.address(), c.responder.memory->rkey)
      .post(c.requester.qp.get());
  wait_for(s.world.silence(), [] { return false; });
  c.requester.qp.reset();
  probe("completions-there-before-destroy", completions(s, c.requester.cq.get(), 1));
}

void drained(const setting& s) {
  connection c(s);
  const auto write = [&](std::uint64_t id) {
    return request(id, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)})
        .remote(c.responder.memory.address(), c.responder.memory->rkey)
        .post(c.requester.qp.get());
  };
  probe("RTS-SQD", code_name(modify_state(c.requester.qp.get(), IBV_QPS_SQD)));
  wait_until_drained(s, c.requester.qp.get());
  probe("post-in-SQD", code_name(write(1)));
  probe("post-in-SQD-completions", completions(s, c.requester.cq.get(), 0));
  probe("SQD-RTS", code_name(modify_state(c.requester.qp.get(), IBV_QPS_RTS)));
  probe("after-SQD-RTS", settled_completions(s, c.requester.cq.get()));
  write(2);
  probe("post-after-SQD-RTS", completions(s, c.requester.cq.get(), 2));
}

/// SQD with a request that waits for a receive, and one behind it.
void drained_while_waiting(const setting& s) {
  connection c(s);
  request(1, IBV_WR_SEND, {c.requester.memory.piece(0, 8)}).post(c.requester.qp.get());
  wait_for(s.world.silence(), [] { return false; });
  probe("waiting-RTS-SQD", code_name(modify_state(c.requester.qp.get(), IBV_QPS_SQD)));
  probe("waiting-RTS-SQD-events", async_events(s, 1));
  request(2, IBV_WR_SEND, {c.requester.memory.piece(0, 8)}).post(c.requester.qp.get());
  for (std::uint64_t id = 11; id <= 13; ++id)
    post_receive(c.responder.qp.get(), id, {c.responder.memory.piece(0, 64)});
  probe("waiting-RTS-SQD-completions", completions(s, c.requester.cq.get(), 0));
  probe("waiting-SQD-RTS", code_name(modify_state(c.requester.qp.get(), IBV_QPS_RTS)));
  probe("waiting-SQD-RTS-completions", completions(s, c.requester.cq.get(), 0));
  request(3, IBV_WR_SEND, {c.requester.memory.piece(0, 8)}).post(c.requester.qp.get());
  probe("waiting-SQD-RTS-post-completions", completions(s, c.requester.cq.get(), 3));
}

}  // namespace

void probe_flush(const setting& s) {
  receives(s);
  sends(s);
  after_failure(s);
  keeps_completions(s);
  drained(s);
  drained_while_waiting(s);
}

}  // namespace conformance
