// Requests that fail at one of the sides: the completions of both sides, and their states.
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

/// Runs one request on its own connection and prints all its results.
template <class Prepare>
void refuse(const setting& s, const std::string& what, Prepare&& prepare,
            const connection_options& options = {}) {
  connection c(s, options);
  request r(1, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 64)});
  r.remote(c.responder.memory.address(), c.responder.memory->rkey);
  prepare(r, c);
  const int code = r.post(c.requester.qp.get());
  if (code != 0) return probe(what, code_name(code));
  const std::string requester = completions(s, c.requester.cq.get(), 1);
  const bool failed = requester.find("SUCCESS") == std::string::npos;
  std::string state = failed ? state_after(s, c.requester.qp.get(), IBV_QPS_ERR)
                             : name(state_of(c.requester.qp.get()));
  const std::string responder = settled_completions(s, c.responder.cq.get());
  probe(what, requester + ", " + state + "; responder " + responder + ", " +
                  name(state_of(c.responder.qp.get())));
  const std::string events = settled_async_events(s);
  if (events != "nothing") probe(what + "-events", events);
}

void local_keys(const setting& s) {
  const auto pd = own(ibv_alloc_pd(s.context));
  setting other = s;
  other.pd = pd.get();
  const region foreign(other, 4096);
  const region constant(s, 4096, IBV_ACCESS_REMOTE_READ);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ}) {
    const std::string op = opcode == IBV_WR_RDMA_WRITE ? "write"
                           : opcode == IBV_WR_SEND     ? "send"
                                                       : "read";
    const auto with = [&](const std::string& what, ibv_sge piece) {
      refuse(s, "lkey-" + what + "-" + op, [&](request& r, connection& c) {
        r.wr.opcode = opcode;
        if (opcode == IBV_WR_SEND)
          post_receive(c.responder.qp.get(), 9, {c.responder.memory.piece(0, 64)});
        // Without memory of its own: the connection's, the key changed.
        if (piece.addr == 0) piece.addr = c.requester.memory.address();
        r.pieces = {piece};
      });
    };
    with("unknown", {0, 64, 0x7fffff01});
    with("zero", {0, 64, 0});
    with("unknown-zero-length", {0, 0, 0x7fffff01});
    with("other-pd", foreign.piece(0, 64));
    with("before-mr", {foreign.address() - 1, 64, foreign.get()->lkey});
    with("read-only", constant.piece(0, 64));
    refuse(s, "lkey-across-end-" + op, [&](request& r, connection& c) {
      r.wr.opcode = opcode;
      if (opcode == IBV_WR_SEND)
        post_receive(c.responder.qp.get(), 9, {c.responder.memory.piece(0, 64)});
      r.pieces = {c.requester.memory.piece((1 << 16) - 32, 64)};
    });
    refuse(s, "lkey-second-piece-unknown-" + op, [&](request& r, connection& c) {
      r.wr.opcode = opcode;
      if (opcode == IBV_WR_SEND)
        post_receive(c.responder.qp.get(), 9, {c.responder.memory.piece(0, 128)});
      r.pieces.push_back({c.requester.memory.address(), 64, 0x7fffff01});
    });
  }
}

void remote_keys(const setting& s) {
  const auto pd = own(ibv_alloc_pd(s.context));
  setting other = s;
  other.pd = pd.get();
  const region foreign(other, 4096);
  const region no_remote(s, 4096, IBV_ACCESS_LOCAL_WRITE);
  const region only_read(s, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  const region only_write(s, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  const region only_atomic(s, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  const struct {
    const char* name;
    ibv_wr_opcode opcode;
  } operations[] = {{"write", IBV_WR_RDMA_WRITE},
                    {"read", IBV_WR_RDMA_READ},
                    {"fetch_and_add", IBV_WR_ATOMIC_FETCH_AND_ADD}};
  for (const auto& operation : operations) {
    const auto to = [&](const std::string& what, std::uint64_t address, std::uint32_t rkey,
                        std::size_t length = 8) {
      refuse(s, "rkey-" + what + "-" + operation.name, [&](request& r, connection& c) {
        r.wr.opcode = operation.opcode;
        r.pieces = {c.requester.memory.piece(0, length)};
        if (operation.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
          r.atomic(address, rkey, 1, 0);
        else
          r.remote(address, rkey);
      });
    };
    to("unknown", only_read.address(), 0x7fffff01);
    to("zero", only_read.address(), 0);
    to("wrong-tag", only_write.address(), only_write.get()->rkey ^ 1);
    to("other-pd", foreign.address(), foreign.get()->rkey);
    to("no-remote-access", no_remote.address(), no_remote.get()->lkey);
    to("only-remote-read", only_read.address(), only_read.get()->rkey);
    to("only-remote-write", only_write.address(), only_write.get()->rkey);
    to("only-remote-atomic", only_atomic.address(), only_atomic.get()->rkey);
    refuse(s, std::string("rkey-beyond-") + operation.name, [&](request& r, connection& c) {
      r.wr.opcode = operation.opcode;
      r.pieces = {c.requester.memory.piece(0, 8)};
      const std::uint64_t address = c.responder.memory.address(1 << 16);
      if (operation.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        r.atomic((address + 7) & ~7ULL, c.responder.memory->rkey, 1, 0);
      else
        r.remote(address - 4, c.responder.memory->rkey);
    });
    to("below", (foreign.address() & ~7ULL) - 64, only_read.get()->rkey);
    to("top-of-address-space", UINT64_MAX - 7, only_atomic.get()->rkey);
    if (operation.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) continue;
    to("unknown-zero-length", only_read.address(), 0x7fffff01, 0);
    to("beyond-zero-length", only_write.address() + 4097, only_write.get()->rkey, 0);
  }
}

void queue_pair_access(const setting& s) {
  const struct {
    const char* name;
    unsigned access;
  } rights[] = {{"none", 0},
                {"local-write", IBV_ACCESS_LOCAL_WRITE},
                {"remote-write", IBV_ACCESS_REMOTE_WRITE},
                {"remote-read", IBV_ACCESS_REMOTE_READ},
                {"remote-atomic", IBV_ACCESS_REMOTE_ATOMIC}};
  for (const auto& right : rights) {
    connection_options options;
    options.access = right.access;
    const std::string prefix = "qp-access-" + std::string(right.name) + "-";
    refuse(
        s, prefix + "write", [](request&, connection&) {}, options);
    refuse(
        s, prefix + "read", [](request& r, connection&) { r.wr.opcode = IBV_WR_RDMA_READ; },
        options);
    refuse(
        s, prefix + "fetch_and_add",
        [](request& r, connection& c) {
          r.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
          r.pieces = {c.requester.memory.piece(0, 8)};
          r.atomic(c.responder.memory.address(), c.responder.memory->rkey, 1, 0);
        },
        options);
    refuse(
        s, prefix + "send",
        [](request& r, connection& c) {
          post_receive(c.responder.qp.get(), 9, {c.responder.memory.piece(0, 64)});
          r.wr.opcode = IBV_WR_SEND;
        },
        options);
  }
}

void receives(const setting& s) {
  const region constant(s, 4096, IBV_ACCESS_REMOTE_READ);
  const auto pd = own(ibv_alloc_pd(s.context));
  setting other = s;
  other.pd = pd.get();
  const region foreign(other, 4096);
  const auto send_into = [&](const std::string& what, std::vector<ibv_sge> pieces,
                             ibv_wr_opcode opcode = IBV_WR_SEND) {
    refuse(s, "receive-" + what, [&](request& r, connection& c) {
      for (ibv_sge& piece : pieces)
        if (piece.addr == 0)
          piece = {c.responder.memory.address(), piece.length,
                   piece.lkey != 0 ? piece.lkey : c.responder.memory->lkey};
      post_receive(c.responder.qp.get(), 9, pieces);
      r.wr.opcode = opcode;
    });
  };
  send_into("one-byte-short", {{0, 63, 0}});
  send_into("exact", {{0, 64, 0}});
  send_into("empty", {});
  send_into("two-pieces-short", {{0, 32, 0}, {0, 31, 0}});
  send_into("unknown-lkey", {{0, 64, 0x7fffff01}});
  send_into("second-lkey-unknown", {{0, 32, 0}, {0, 32, 0x7fffff01}});
  send_into("unused-lkey-unknown", {{0, 64, 0}, {0, 32, 0x7fffff01}});
  send_into("read-only", {constant.piece(0, 64)});
  send_into("other-pd", {foreign.piece(0, 64)});
  send_into("beyond-mr", {{constant.address() + 4090, 64, constant.get()->lkey}});
  refuse(s, "receive-deregistered", [&](request& r, connection& c) {
    region gone(s, 4096);
    post_receive(c.responder.qp.get(), 9, {gone.piece(0, 64)});
    r.wr.opcode = IBV_WR_SEND;
  });
  refuse(s, "write-deregistered", [&](request& r, connection&) {
    region gone(s, 4096);
    r.remote(gone.address(), gone->rkey);
  });
  refuse(s, "send-with-inv-unknown-key", [&](request& r, connection& c) {
    post_receive(c.responder.qp.get(), 9, {c.responder.memory.piece(0, 64)});
    r.wr.opcode = IBV_WR_SEND_WITH_INV;
    r.wr.invalidate_rkey = 0x7fffff01;
  });
  refuse(s, "write-with-imm-bad-rkey", [&](request& r, connection& c) {
    post_receive(c.responder.qp.get(), 9, {c.responder.memory.piece(0, 64)});
    r.wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    r.wr.wr.rdma.rkey ^= 1;
  });
  // An unsignaled request that fails has a completion, too.
  refuse(s, "unsignaled-failure", [&](request& r, connection&) {
    r.wr.send_flags = 0;
    r.wr.wr.rdma.rkey ^= 1;
  });
}

}  // namespace

void probe_refusal(const setting& s) {
  local_keys(s);
  remote_keys(s);
  queue_pair_access(s);
  receives(s);
}

}  // namespace conformance
