// Requests without an answer, or with the answer "not ready".
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

/// Impatient: gives up after tens of milliseconds.
connection_options impatient() {
  connection_options options;
  options.timeout = 10;
  options.retries = 1;
  options.rnr_retries = 1;
  return options;
}

std::string told(const setting& s, connection& c) {
  const std::string requester = completions(s, c.requester.cq.get(), 1);
  const bool failed = requester.find("SUCCESS") == std::string::npos;
  const std::string state = failed ? state_after(s, c.requester.qp.get(), IBV_QPS_ERR)
                                   : name(state_of(c.requester.qp.get()));
  const std::string responder = settled_completions(s, c.responder.cq.get());
  return requester + ", " + state + "; responder " + responder + ", " +
         name(state_of(c.responder.qp.get()));
}

void not_ready(const setting& s) {
  const struct {
    const char* name;
    ibv_wr_opcode opcode;
  } operations[] = {{"send", IBV_WR_SEND},
                    {"send-with-imm", IBV_WR_SEND_WITH_IMM},
                    {"write-with-imm", IBV_WR_RDMA_WRITE_WITH_IMM}};
  for (const int retries : {0, 1, 3})
    for (const auto& operation : operations) {
      connection_options options = impatient();
      options.timeout = 14;
      options.rnr_retries = static_cast<std::uint8_t>(retries);
      connection c(s, options);
      request(1, operation.opcode, {c.requester.memory.piece(0, 8)})
          .remote(c.responder.memory.address(), c.responder.memory->rkey)
          .post(c.requester.qp.get());
      probe("no-receive-" + std::string(operation.name) + "-rnr_retry-" + std::to_string(retries),
            told(s, c));
    }
  connection c(s);
  request(1, IBV_WR_SEND, {c.requester.memory.piece(0, 8)}).post(c.requester.qp.get());
  request(2, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)})
      .remote(c.responder.memory.address(), c.responder.memory->rkey)
      .post(c.requester.qp.get());
  probe("no-receive-rnr_retry-7", completions(s, c.requester.cq.get(), 0));
  post_receive(c.responder.qp.get(), 3, {c.responder.memory.piece(0, 64)});
  probe("receive-posted-late", completions(s, c.responder.cq.get(), 1));
  probe("sender-that-waited", completions(s, c.requester.cq.get(), 2));
  // A write needs no receive.
  connection d(s, impatient());
  request(1, IBV_WR_RDMA_WRITE, {d.requester.memory.piece(0, 8)})
      .remote(d.responder.memory.address(), d.responder.memory->rkey)
      .post(d.requester.qp.get());
  probe("no-receive-write", told(s, d));
}

void no_answer(const setting& s) {
  const auto write = [&](connection& c) {
    request(1, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)})
        .remote(c.responder.memory.address(), c.responder.memory->rkey)
        .post(c.requester.qp.get());
  };
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_ERR}) {
    connection c(s, impatient());
    modify_state(c.responder.qp.get(), state);
    write(c);
    probe("peer-in-" + name(state), told(s, c));
  }
  {
    connection_options options = impatient();
    options.retries = 0;
    connection c(s, options);
    modify_state(c.responder.qp.get(), IBV_QPS_ERR);
    write(c);
    probe("peer-in-ERR-retry_cnt-0", told(s, c));
  }
  {
    connection c(s, impatient());
    modify_state(c.responder.qp.get(), IBV_QPS_RESET);
    bring_to(s, c.responder.qp.get(), IBV_QPS_INIT, c.requester.qp->qp_num);
    write(c);
    probe("peer-in-INIT", told(s, c));
  }
  {
    connection c(s, impatient());
    modify_state(c.responder.qp.get(), IBV_QPS_RESET);
    bring_to(s, c.responder.qp.get(), IBV_QPS_RTR, c.requester.qp->qp_num);
    write(c);
    probe("peer-in-RTR", told(s, c));
  }
  {
    connection c(s, impatient());
    modify_state(c.responder.qp.get(), IBV_QPS_SQD);
    write(c);
    probe("peer-in-SQD", told(s, c));
  }
  {
    connection c(s, impatient());
    c.responder.qp.reset();
    write(c);
    probe("peer-destroyed", completions(s, c.requester.cq.get(), 1) + ", " +
                                state_after(s, c.requester.qp.get(), IBV_QPS_ERR));
  }
}

/// A connection whose sides do not agree.
void mismatches(const setting& s) {
  const auto mismatched = [&](const std::string& what, auto&& change_rtr, auto&& change_rts) {
    const connection_options options = impatient();
    side requester(s, options, nullptr);
    side responder(s, options, nullptr);
    bring_to(s, responder.qp.get(), IBV_QPS_RTS, requester.qp->qp_num, options);
    bring_to(s, requester.qp.get(), IBV_QPS_INIT, responder.qp->qp_num, options);
    ibv_qp_attr attr = usual_attributes(s, responder.qp->qp_num, options);
    attr.qp_state = IBV_QPS_RTR;
    change_rtr(attr);
    int code = ibv_modify_qp(requester.qp.get(), &attr, IBV_QP_STATE | rtr_mask(IBV_QPT_RC));
    attr.qp_state = IBV_QPS_RTS;
    change_rts(attr);
    if (code == 0)
      code = ibv_modify_qp(requester.qp.get(), &attr, IBV_QP_STATE | rts_mask(IBV_QPT_RC));
    if (code != 0) return probe(what, code_name(code));
    request(1, IBV_WR_RDMA_WRITE, {requester.memory.piece(0, 4000)})
        .remote(responder.memory.address(), responder.memory->rkey)
        .post(requester.qp.get());
    const std::string outcome = completions(s, requester.cq.get(), 1);
    probe(what, outcome + "; responder " + settled_completions(s, responder.cq.get()) + ", " +
                    name(state_of(responder.qp.get())));
  };
  const auto keep = [](ibv_qp_attr&) {};
  mismatched(
      "unknown-qpn", [](ibv_qp_attr& attr) { attr.dest_qp_num = 0xfffff0; }, keep);
  mismatched("psn-ahead", keep, [](ibv_qp_attr& attr) { attr.sq_psn = 0x200; });
  mismatched("psn-behind", keep, [](ibv_qp_attr& attr) { attr.sq_psn = 0x100; });
  mismatched(
      "mtu-smaller", [](ibv_qp_attr& attr) { attr.path_mtu = IBV_MTU_256; }, keep);
  // The peer accepts requests with its number from any queue pair, also while it is connected to
  // another one.
  const connection_options options = impatient();
  side requester(s, options, nullptr);
  side responder(s, options, nullptr);
  bring_to(s, responder.qp.get(), IBV_QPS_RTS, 0xfffff0, options);
  bring_to(s, requester.qp.get(), IBV_QPS_RTS, responder.qp->qp_num, options);
  request(1, IBV_WR_RDMA_WRITE, {requester.memory.piece(0, 8)})
      .remote(responder.memory.address(), responder.memory->rkey)
      .post(requester.qp.get());
  probe("peer-connected-to-another", completions(s, requester.cq.get(), 1));
}

/// More reads and atomics under way than the responder keeps.
void too_deep(const setting& s) {
  const connection_options options = impatient();
  side requester(s, options, nullptr);
  side responder(s, options, nullptr);
  connection_options shallow = options;
  shallow.read_depth = 0;
  bring_to(s, responder.qp.get(), IBV_QPS_RTS, requester.qp->qp_num, shallow);
  bring_to(s, requester.qp.get(), IBV_QPS_RTS, responder.qp->qp_num, options);
  request(1, IBV_WR_RDMA_READ, {requester.memory.piece(0, 8)})
      .remote(responder.memory.address(), responder.memory->rkey)
      .post(requester.qp.get());
  probe("read-with-max_dest_rd_atomic-0", completions(s, requester.cq.get(), 1));
}

}  // namespace

void probe_retry(const setting& s) {
  not_ready(s);
  no_answer(s);
  mismatches(s);
  too_deep(s);
}

}  // namespace conformance
