// Posting: in every state, lists with a bad member, full queues, requests that make no sense.
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

constexpr ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                   IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};

void in_each_state(const setting& s, ibv_qp_type type) {
  const region memory(s, 4096);
  connection_options options;
  options.type = type;
  for (const ibv_qp_state state : states) {
    const auto cq = make_cq(s, 16);
    const auto qp = make_qp(s, cq.get(), options);
    bring_to(s, qp.get(), state, qp->qp_num, options);
    const std::string prefix = name(type) + "-" + name(state);
    probe_code(prefix + "-post_recv",
               [&] { return post_receive(qp.get(), 1, {memory.piece(0, 64)}); });
    if (type != IBV_QPT_UD)
      probe_code(prefix + "-post_send", [&] {
        return request(2, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)})
            .remote(memory.address(1024), memory.get()->rkey)
            .post(qp.get());
      });
    // Soft-RoCE does not flush a receive that is posted in ERR.
    const bool sends = type != IBV_QPT_UD && (state == IBV_QPS_RTS || state == IBV_QPS_ERR);
    const std::size_t expected = sends ? 1 : 0;
    probe(prefix + "-completions", completions(s, cq.get(), expected));
  }
}

/// What was refused in RESET: does it happen later?
void refused_in_reset(const setting& s) {
  connection_options options;
  const auto cq = make_cq(s, 16);
  const region memory(s, 4096);
  const auto qp = make_qp(s, cq.get(), options);
  const int code = request(1, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)})
                       .remote(memory.address(1024), memory.get()->rkey)
                       .post(qp.get());
  probe("refused-send", code_name(code));
  bring_to(s, qp.get(), IBV_QPS_RTS, qp->qp_num, options);
  request(2, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)})
      .remote(memory.address(1024), memory.get()->rkey)
      .post(qp.get());
  const auto all = collect(s, cq.get(), 1);
  wait_for(s.world.silence(), [] { return false; });
  probe("refused-send-in-RTS-first", all.empty() ? "nothing" : told(all[0]));
}

void lists(const setting& s) {
  connection c(s);
  region& memory = c.requester.memory;
  ibv_sge pieces[5];
  for (ibv_sge& piece : pieces) piece = memory.piece(0, 8);
  ibv_send_wr wrs[3] = {};
  for (std::uint64_t i = 0; i < 3; ++i) {
    wrs[i].wr_id = i + 1;
    wrs[i].next = i < 2 ? &wrs[i + 1] : nullptr;
    wrs[i].sg_list = pieces;
    wrs[i].num_sge = i == 1 ? 5 : 1;
    wrs[i].opcode = IBV_WR_RDMA_WRITE;
    wrs[i].send_flags = IBV_SEND_SIGNALED;
    wrs[i].wr.rdma.remote_addr = c.responder.memory.address();
    wrs[i].wr.rdma.rkey = c.responder.memory->rkey;
  }
  ibv_send_wr* bad = nullptr;
  probe_code("list-with-bad-second",
             [&] { return ibv_post_send(c.requester.qp.get(), wrs, &bad); });
  probe("list-with-bad-second-bad_wr", bad == &wrs[1]   ? "second"
                                       : bad == nullptr ? "NULL"
                                                        : "other");
  probe("list-with-bad-second-completions", completions(s, c.requester.cq.get(), 1));
  wrs[1].num_sge = 4;
  bad = &wrs[2];
  probe_code("list", [&] { return ibv_post_send(c.requester.qp.get(), wrs, &bad); });
  probe("list-bad_wr", bad == nullptr ? "NULL" : bad == &wrs[2] ? "untouched" : "other");
  probe("list-completions", completions(s, c.requester.cq.get(), 3));

  ibv_recv_wr receives[3] = {};
  for (std::uint64_t i = 0; i < 3; ++i)
    receives[i] = {i + 1, i < 2 ? &receives[i + 1] : nullptr, pieces, i == 1 ? 5 : 1};
  ibv_recv_wr* bad_receive = nullptr;
  probe_code("receive-list-with-bad-second",
             [&] { return ibv_post_recv(c.requester.qp.get(), receives, &bad_receive); });
  probe("receive-list-bad_wr", bad_receive == &receives[1] ? "second" : "other");
}

void senseless(const setting& s) {
  const auto post = [&](const std::string& what, auto&& change, ibv_qp_type type = IBV_QPT_RC) {
    connection_options options;
    options.type = type;
    connection c(s, options);
    request r(1, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)});
    r.remote(c.responder.memory.address(), c.responder.memory->rkey);
    change(r, c);
    if (probe_code(what, [&] { return r.post(c.requester.qp.get()); }) != 0) return;
    probe(what + "-completion", completions(s, c.requester.cq.get(), 1));
    probe(what + "-state", name(state_of(c.requester.qp.get())));
  };
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC})
    for (const int opcode : {10, 11, 15})
      post(
          name(type) + "-opcode-" + std::to_string(opcode),
          [opcode](request& r, connection&) {
            r.wr.opcode = static_cast<ibv_wr_opcode>(opcode);
            r.wr.imm_data = 0;
          },
          type);
  post("inline-limit", [](request& r, connection& c) {
    r.pieces = {c.requester.memory.piece(0, 64)};
    r.flags(IBV_SEND_INLINE);
  });
  post("inline-beyond", [](request& r, connection& c) {
    r.pieces = {c.requester.memory.piece(0, 4096)};
    r.flags(IBV_SEND_INLINE);
  });
  post("inline-read", [](request& r, connection&) {
    r.wr.opcode = IBV_WR_RDMA_READ;
    r.flags(IBV_SEND_INLINE);
  });
  post("bind_mw-with-sge", [](request& r, connection&) { r.wr.opcode = IBV_WR_BIND_MW; });
  post("unknown-flag", [](request& r, connection&) { r.flags(1U << 20); });
  post("ip-csum-flag", [](request& r, connection&) { r.flags(IBV_SEND_IP_CSUM); });
  post("five-pieces",
       [](request& r, connection& c) { r.pieces.assign(5, c.requester.memory.piece(0, 8)); });
  post("no-piece", [](request& r, connection&) { r.pieces.clear(); });
  post("atomic-misaligned", [](request& r, connection& c) {
    r.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    r.atomic(c.responder.memory.address(4), c.responder.memory->rkey, 1, 0);
  });
  post("atomic-4-bytes", [](request& r, connection& c) {
    r.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    r.pieces = {c.requester.memory.piece(0, 4)};
    r.atomic(c.responder.memory.address(), c.responder.memory->rkey, 1, 0);
  });
  post("atomic-16-bytes", [](request& r, connection& c) {
    r.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    r.pieces = {c.requester.memory.piece(0, 16)};
    r.atomic(c.responder.memory.address(), c.responder.memory->rkey, 1, 0);
  });
}

/// How many sends fit while none is acknowledged.
void full_send_queue(const setting& s) {
  const region memory(s, 4096);
  for (const unsigned asked : {1U, 2U, 3U, 4U, 8U, 15U, 16U, 17U, 100U}) {
    const auto cq = make_cq(s, 1000);
    connection_options options;
    options.cap = {asked, 1, 1, 1, 0};
    options.timeout = 0;  // waits for ever
    const auto qp = make_qp(s, cq.get(), options);
    bring_to(s, qp.get(), IBV_QPS_RTS, 0xfffff0, options);
    unsigned fitted = 0;
    int code = 0;
    while (fitted < 5000) {
      request r(fitted, IBV_WR_SEND, {memory.piece(0, 8)});
      if ((code = r.post(qp.get())) != 0) break;
      ++fitted;
    }
    probe("sends-that-fit-into-" + std::to_string(asked),
          std::to_string(fitted) + ", then " + code_name(code));
  }
}

}  // namespace

void probe_posting(const setting& s) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) in_each_state(s, type);
  refused_in_reset(s);
  lists(s);
  senseless(s);
  full_send_queue(s);
}

}  // namespace conformance
