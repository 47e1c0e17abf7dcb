// What works: every operation of a reliable connection, with its completions and its data.
#include <cstring>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

constexpr std::size_t sizes[] = {0, 1, 64, 1023, 1024, 1025, 4096, 30000};

const char* verdict(bool arrived) {
  return arrived ? "data arrived" : "data did not arrive";
}

void writes(const setting& s) {
  connection c(s);
  for (const std::size_t size : sizes) {
    c.requester.memory.fill(0, size, 3);
    c.responder.memory.fill(0, size + 1, 200);
    request(size, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, size)})
        .remote(c.responder.memory.address(), c.responder.memory->rkey)
        .post(c.requester.qp.get());
    const std::string told = completions(s, c.requester.cq.get(), 1);
    probe("write-" + std::to_string(size),
          told + ", " + verdict(c.responder.memory.filled(0, size, 3)));
  }
  probe("write-responder", completions(s, c.responder.cq.get(), 0));
}

void reads(const setting& s) {
  connection c(s);
  for (const std::size_t size : sizes) {
    c.requester.memory.fill(0, size + 1, 200);
    c.responder.memory.fill(0, size, 5);
    request(size, IBV_WR_RDMA_READ, {c.requester.memory.piece(0, size)})
        .remote(c.responder.memory.address(), c.responder.memory->rkey)
        .post(c.requester.qp.get());
    const std::string told = completions(s, c.requester.cq.get(), 1);
    probe("read-" + std::to_string(size),
          told + ", " + verdict(c.requester.memory.filled(0, size, 5)));
  }
  probe("read-responder", completions(s, c.responder.cq.get(), 0));
}

void sends(const setting& s) {
  connection c(s);
  for (const std::size_t size : sizes) {
    c.requester.memory.fill(0, size, 7);
    post_receive(c.responder.qp.get(), 1000 + size, {c.responder.memory.piece(0, 1 << 15)});
    request(size, IBV_WR_SEND, {c.requester.memory.piece(0, size)}).post(c.requester.qp.get());
    probe("send-" + std::to_string(size), completions(s, c.requester.cq.get(), 1));
    const std::string told = completions(s, c.responder.cq.get(), 1);
    probe("receive-" + std::to_string(size),
          told + ", " + verdict(c.responder.memory.filled(0, size, 7)));
  }
}

void immediates(const setting& s) {
  connection c(s);
  const auto both = [&](const std::string& what, request& r) {
    post_receive(c.responder.qp.get(), 9, {c.responder.memory.piece(4096, 256)});
    r.immediate(0xdeadbeef).post(c.requester.qp.get());
    probe(what, completions(s, c.requester.cq.get(), 1));
    probe(what + "-receiver", completions(s, c.responder.cq.get(), 1));
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{2000}}) {
    request r(1, IBV_WR_RDMA_WRITE_WITH_IMM, {c.requester.memory.piece(0, size)});
    r.remote(c.responder.memory.address(), c.responder.memory->rkey);
    both("write-with-imm-" + std::to_string(size), r);
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}}) {
    request r(2, IBV_WR_SEND_WITH_IMM, {c.requester.memory.piece(0, size)});
    both("send-with-imm-" + std::to_string(size), r);
  }
  // A receive without any memory is enough for the immediate of a write.
  post_receive(c.responder.qp.get(), 10, {});
  request(3, IBV_WR_RDMA_WRITE_WITH_IMM, {c.requester.memory.piece(0, 64)})
      .remote(c.responder.memory.address(), c.responder.memory->rkey)
      .immediate(1)
      .post(c.requester.qp.get());
  probe("write-with-imm-into-empty-receive", completions(s, c.responder.cq.get(), 1));
  post_receive(c.responder.qp.get(), 11, {});
  request(4, IBV_WR_SEND, {}).post(c.requester.qp.get());
  probe("send-without-piece-into-empty-receive", completions(s, c.responder.cq.get(), 1));
}

void pieces(const setting& s) {
  connection c(s);
  region& from = c.requester.memory;
  region& to = c.responder.memory;
  from.fill(0, 64, 11);
  request(1, IBV_WR_RDMA_WRITE, {from.piece(0, 10), from.piece(10, 20), from.piece(30, 34)})
      .remote(to.address(), to->rkey)
      .post(c.requester.qp.get());
  const std::string written = completions(s, c.requester.cq.get(), 1);
  probe("gathered-write", written + ", " + verdict(to.filled(0, 64, 11)));
  to.fill(0, 64, 99);
  post_receive(c.responder.qp.get(), 2, {to.piece(0, 7), to.piece(7, 0), to.piece(7, 100)});
  request(3, IBV_WR_SEND, {from.piece(0, 32), from.piece(32, 0), from.piece(32, 32)})
      .post(c.requester.qp.get());
  const std::string received = completions(s, c.responder.cq.get(), 1);
  probe("gathered-send-scattered", received + ", " + verdict(to.filled(0, 64, 11)));
  collect(s, c.requester.cq.get(), 1);
  to.fill(0, 64, 17);
  request(4, IBV_WR_RDMA_READ, {from.piece(0, 1), from.piece(1, 62), from.piece(63, 1)})
      .remote(to.address(), to->rkey)
      .post(c.requester.qp.get());
  const std::string read = completions(s, c.requester.cq.get(), 1);
  probe("scattered-read", read + ", " + verdict(from.filled(0, 64, 17)));
}

void inlined(const setting& s) {
  connection c(s);
  region& to = c.responder.memory;
  unsigned char text[32];
  std::memset(text, 42, sizeof text);
  const ibv_sge unregistered{reinterpret_cast<std::uintptr_t>(text), sizeof text, 0};
  const auto send_and_overwrite = [&](std::uint64_t id, std::vector<ibv_sge> list) {
    std::memset(text, 42, sizeof text);
    request(id, IBV_WR_RDMA_WRITE, std::move(list))
        .remote(to.address(), to->rkey)
        .flags(IBV_SEND_INLINE)
        .post(c.requester.qp.get());
    std::memset(text, 1, sizeof text);
    const std::string told = completions(s, c.requester.cq.get(), 1);
    bool right = true;
    for (std::size_t i = 0; i < sizeof text; ++i) right = right && to.data()[i] == 42;
    return told + ", " + verdict(right);
  };
  probe("inline-write-unregistered", send_and_overwrite(1, {unregistered}));
  to.fill(0, 64, 0);
  ibv_sge half = unregistered;
  half.length = 16;
  ibv_sge rest = half;
  rest.addr += 16;
  probe("inline-write-two-pieces", send_and_overwrite(2, {half, rest}));
  post_receive(c.responder.qp.get(), 3, {to.piece(0, 64)});
  request(4, IBV_WR_SEND, {unregistered}).flags(IBV_SEND_INLINE).post(c.requester.qp.get());
  probe("inline-send", completions(s, c.requester.cq.get(), 1));
  probe("inline-send-receiver", completions(s, c.responder.cq.get(), 1));
  request(5, IBV_WR_RDMA_WRITE, {})
      .remote(to.address(), to->rkey)
      .flags(IBV_SEND_INLINE)
      .post(c.requester.qp.get());
  probe("inline-nothing", completions(s, c.requester.cq.get(), 1));
}

void signalling(const setting& s) {
  for (const bool all : {false, true}) {
    connection_options options;
    options.signal_all = all;
    connection c(s, options);
    for (std::uint64_t id = 1; id <= 4; ++id) {
      request r(id, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)});
      r.remote(c.responder.memory.address(), c.responder.memory->rkey);
      r.wr.send_flags = id == 4 ? IBV_SEND_SIGNALED : 0;
      r.post(c.requester.qp.get());
    }
    probe(all ? "sq_sig_all" : "unsignaled-and-one-signaled",
          completions(s, c.requester.cq.get(), all ? 4 : 1));
  }
  connection c(s);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    request r(id, id == 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)});
    r.remote(c.responder.memory.address(), c.responder.memory->rkey);
    r.flags(id == 3 ? IBV_SEND_FENCE : 0).post(c.requester.qp.get());
  }
  probe("order-with-fence", completions(s, c.requester.cq.get(), 3));
}

void directions(const setting& s) {
  connection c(s);
  const auto exchange = [&](const char* what, side& from, side& to) {
    post_receive(to.qp.get(), 1, {to.memory.piece(0, 64)});
    request(2, IBV_WR_SEND, {from.memory.piece(0, 32)}).post(from.qp.get());
    probe(std::string(what) + "-sender", completions(s, from.cq.get(), 1));
    probe(std::string(what) + "-receiver", completions(s, to.cq.get(), 1));
  };
  exchange("there", c.requester, c.responder);
  exchange("back", c.responder, c.requester);
  const auto cq = make_cq(s, 16);
  const auto qp = make_qp(s, cq.get());
  bring_to(s, qp.get(), IBV_QPS_RTS, qp->qp_num);
  region memory(s, 4096);
  request(1, IBV_WR_RDMA_WRITE, {memory.piece(0, 64)})
      .remote(memory.address(1024), memory->rkey)
      .post(qp.get());
  probe("write-to-oneself", completions(s, cq.get(), 1));
  post_receive(qp.get(), 2, {memory.piece(0, 64)});
  request(3, IBV_WR_SEND, {memory.piece(512, 32)}).post(qp.get());
  auto both = collect(s, cq.get(), 2);
  if (both.size() == 2 && both[0].opcode == IBV_WC_SEND) std::swap(both[0], both[1]);
  probe("send-to-oneself", both.size() == 2 ? told(both[0]) + "; " + told(both[1]) : "missing");
}

void receives_in_order(const setting& s) {
  connection c(s);
  for (std::uint64_t id = 1; id <= 5; ++id)
    post_receive(c.responder.qp.get(), id, {c.responder.memory.piece(id * 64, 64)});
  for (std::uint64_t id = 1; id <= 5; ++id)
    request(id, IBV_WR_SEND, {c.requester.memory.piece(0, id)}).post(c.requester.qp.get());
  probe("receives-in-order", completions(s, c.responder.cq.get(), 5));
  probe("sends-in-order", completions(s, c.requester.cq.get(), 5));
}

/// Memory under an address of its own choice.
void other_address(const setting& s) {
  connection c(s);
  region& memory = c.responder.memory;
  // Offsets within a page must agree.
  const std::uint64_t iova = 0x40000000 + memory.address() % 4096;
  const auto mr =
      own(ibv_reg_mr_iova(s.pd, memory.data(), 8192, iova, static_cast<unsigned>(every_access)));
  if (!mr) return probe("iova", "not registered");
  c.requester.memory.fill(0, 64, 21);
  request(1, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 64)})
      .remote(iova + 100, mr->rkey)
      .post(c.requester.qp.get());
  const std::string told = completions(s, c.requester.cq.get(), 1);
  probe("write-to-iova", told + ", " + verdict(memory.filled(100, 64, 21)));
  request(2, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 64)})
      .remote(memory.address(100), mr->rkey)
      .post(c.requester.qp.get());
  probe("write-to-address-instead-of-iova", completions(s, c.requester.cq.get(), 1));
}

}  // namespace

void probe_transfer(const setting& s) {
  writes(s);
  reads(s);
  sends(s);
  immediates(s);
  pieces(s);
  inlined(s);
  signalling(s);
  directions(s);
  receives_in_order(s);
  other_address(s);
}

}  // namespace conformance
