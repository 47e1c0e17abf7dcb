// Unreliable datagrams: the GRH before the data, what is dropped, and multicast.
#include <arpa/inet.h>
#include <algorithm>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

constexpr std::size_t grh = 40;

/// Two datagram queue pairs and an address handle for either to reach the other.
struct pair : connection {
  explicit pair(const setting& s) : connection(s, options()), ah(address(s)) {}

  static connection_options options() {
    connection_options datagrams;
    datagrams.type = IBV_QPT_UD;
    return datagrams;
  }
  static owned<ibv_ah> address(const setting& s) {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.grh.dgid = s.gid;
    attr.grh.sgid_index = 1;
    attr.grh.hop_limit = 64;
    attr.port_num = 1;
    owned<ibv_ah> made(ibv_create_ah(s.pd, &attr));
    need(made != nullptr, "ibv_create_ah");
    return made;
  }
  [[nodiscard]] request to_responder(std::uint64_t id, std::size_t length) {
    request r(id, IBV_WR_SEND, {requester.memory.piece(0, length)});
    r.datagram(ah.get(), responder.qp->qp_num);
    return r;
  }

  owned<ibv_ah> ah;
};

void arriving(const setting& s) {
  pair p(s);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{1024}}) {
    p.requester.memory.fill(0, size, 9);
    p.responder.memory.fill(0, 2048, 100);
    post_receive(p.responder.qp.get(), 1, {p.responder.memory.piece(0, 2048)});
    p.to_responder(2, size).post(p.requester.qp.get());
    probe("send-" + std::to_string(size), completions(s, p.requester.cq.get(), 1));
    const auto all = collect(s, p.responder.cq.get(), 1);
    if (all.empty()) {
      probe("receive-" + std::to_string(size), "nothing");
      continue;
    }
    probe("receive-" + std::to_string(size),
          told(all[0]) + (p.responder.memory.filled(grh, size, 9) ? ", data after the GRH"
                                                                  : ", no data after the GRH"));
    probe("receive-" + std::to_string(size) + "-src_qp",
          all[0].src_qp == p.requester.qp->qp_num ? "the sender's" : "another");
    probe("receive-" + std::to_string(size) + "-path",
          "pkey_index " + std::to_string(all[0].pkey_index) + " slid " +
              std::to_string(all[0].slid) + " sl " + std::to_string(all[0].sl) + " bits " +
              std::to_string(all[0].dlid_path_bits));
  }
  post_receive(p.responder.qp.get(), 3, {p.responder.memory.piece(0, 2048)});
  request imm(4, IBV_WR_SEND_WITH_IMM, {p.requester.memory.piece(0, 8)});
  imm.datagram(p.ah.get(), p.responder.qp->qp_num).immediate(0xabcdef).post(p.requester.qp.get());
  probe("send-with-imm", completions(s, p.requester.cq.get(), 1));
  probe("send-with-imm-receiver", completions(s, p.responder.cq.get(), 1));
}

/// The forty bytes in front, and an address handle made from them.
void header(const setting& s) {
  pair p(s);
  post_receive(p.responder.qp.get(), 1, {p.responder.memory.piece(0, 2048)});
  p.to_responder(2, 16).post(p.requester.qp.get());
  collect(s, p.requester.cq.get(), 1);
  auto all = collect(s, p.responder.cq.get(), 1);
  if (all.empty()) return probe("header", "nothing received");
  const unsigned char* const bytes = p.responder.memory.data();
  // Of an IPv4 packet: its header in the last twenty bytes (verbs: ibv_init_ah_from_wc).
  probe(
      "header-first-twenty",
      std::all_of(bytes, bytes + 20, [](unsigned char b) { return b == 0; }) ? "zero" : "not zero");
  probe("header-version", hex(bytes[20]));
  probe("header-protocol", std::to_string(bytes[29]));
  probe("header-ttl", std::to_string(bytes[28]));
  probe("header-source", std::equal(bytes + 32, bytes + 36, s.gid.raw + 12) ? "own" : "other");
  probe("header-destination", std::equal(bytes + 36, bytes + 40, s.gid.raw + 12) ? "own" : "other");
  auto* const head = reinterpret_cast<ibv_grh*>(p.responder.memory.data());
  ibv_ah_attr attr{};
  probe_minus_one("init_ah_from_wc",
                  [&] { return ibv_init_ah_from_wc(s.context, 1, &all[0], head, &attr); });
  probe("init_ah_from_wc-attributes",
        "global " + std::to_string(attr.is_global) + " sgid_index " +
            std::to_string(attr.grh.sgid_index) + " port " + std::to_string(attr.port_num) +
            (std::equal(attr.grh.dgid.raw, attr.grh.dgid.raw + 16, s.gid.raw) ? " own gid"
                                                                              : " other gid"));
  const auto back = own(probe_pointer(
      "create_ah_from_wc", [&] { return ibv_create_ah_from_wc(s.pd, &all[0], head, 1); }));
  if (!back) return;
  post_receive(p.requester.qp.get(), 3, {p.requester.memory.piece(0, 2048)});
  request answer(4, IBV_WR_SEND, {p.responder.memory.piece(0, 8)});
  answer.datagram(back.get(), all[0].src_qp).post(p.responder.qp.get());
  probe("answer", completions(s, p.requester.cq.get(), 1));
}

template <class Prepare>
void one(const setting& s, const std::string& what, Prepare&& prepare) {
  pair p(s);
  request r = p.to_responder(1, 64);
  prepare(r, p);
  const int code = r.post(p.requester.qp.get());
  if (code != 0) return probe(what, code_name(code));
  const std::string requester = completions(s, p.requester.cq.get(), 1);
  const std::string responder = completions(s, p.responder.cq.get(), 0);
  probe(what, requester + ", " + name(state_of(p.requester.qp.get())) + "; responder " + responder +
                  ", " + name(state_of(p.responder.qp.get())));
  const std::string events = settled_async_events(s);
  if (events != "nothing") probe(what + "-events", events);
}

void dropped(const setting& s) {
  const auto receive = [](pair& p, std::size_t length) {
    post_receive(p.responder.qp.get(), 9, {p.responder.memory.piece(0, length)});
  };
  one(s, "no-receive", [](request&, pair&) {});
  one(s, "wrong-qkey", [&](request& r, pair& p) {
    receive(p, 2048);
    r.wr.wr.ud.remote_qkey = 0x22222222;
  });
  one(s, "controlled-qkey", [&](request& r, pair& p) {
    receive(p, 2048);
    r.wr.wr.ud.remote_qkey = 0x80000000;
  });
  one(s, "unknown-qpn", [&](request& r, pair& p) {
    receive(p, 2048);
    r.wr.wr.ud.remote_qpn = 0xfffff0;
  });
  one(s, "receive-exact", [&](request&, pair& p) { receive(p, grh + 64); });
  one(s, "receive-without-room-for-grh", [&](request&, pair& p) { receive(p, 64); });
  one(s, "receive-one-byte-short", [&](request&, pair& p) { receive(p, grh + 63); });
  one(s, "receive-only-grh", [&](request&, pair& p) { receive(p, grh); });
  one(s, "receive-empty", [](request&, pair& p) { post_receive(p.responder.qp.get(), 9, {}); });
  one(s, "receive-grh-in-piece-of-its-own", [](request&, pair& p) {
    post_receive(p.responder.qp.get(), 9,
                 {p.responder.memory.piece(0, grh), p.responder.memory.piece(64, 64)});
  });
  one(s, "receive-unknown-lkey", [](request&, pair& p) {
    post_receive(p.responder.qp.get(), 9, {{p.responder.memory.address(), 2048, 0x7fffff01}});
  });
  one(s, "unknown-lkey", [&](request& r, pair& p) {
    receive(p, 2048);
    r.pieces[0].lkey = 0x7fffff01;
  });
  one(s, "longer-than-mtu", [&](request& r, pair& p) {
    receive(p, 4096);
    r.pieces = {p.requester.memory.piece(0, 1025)};
  });
  one(s, "peer-in-INIT", [&](request&, pair& p) {
    modify_state(p.responder.qp.get(), IBV_QPS_RESET);
    bring_to(s, p.responder.qp.get(), IBV_QPS_INIT, 0, pair::options());
    receive(p, 2048);
  });
  one(s, "peer-in-RTR", [&](request&, pair& p) {
    modify_state(p.responder.qp.get(), IBV_QPS_RESET);
    bring_to(s, p.responder.qp.get(), IBV_QPS_RTR, 0, pair::options());
    receive(p, 2048);
  });
  one(s, "peer-in-ERR", [](request&, pair& p) { modify_state(p.responder.qp.get(), IBV_QPS_ERR); });
  one(s, "inline", [&](request& r, pair& p) {
    receive(p, 2048);
    r.flags(IBV_SEND_INLINE);
  });
}

void other_operations(const setting& s) {
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV, IBV_WR_BIND_MW})
    one(s, "opcode-" + std::to_string(opcode), [opcode](request& r, pair& p) {
      // The address handle keeps its place: the provider looks there whatever the operation is.
      r.wr.opcode = opcode;
      r.pieces = {p.requester.memory.piece(0, 8)};
    });
}

}  // namespace

void probe_datagram(const setting& s) {
  arriving(s);
  header(s);
  dropped(s);
  other_operations(s);
}

void probe_multicast(const setting& s) {
  pair p(s);
  ibv_gid group{};
  ::inet_pton(AF_INET6, "ff0e::ffff:ef01:101", group.raw);
  ibv_qp* const qp = p.responder.qp.get();
  const auto attach = [&](const std::string& what, ibv_qp* to, const ibv_gid& gid, int lid = 0) {
    return probe_code("attach-" + what,
                      [&] { return ibv_attach_mcast(to, &gid, static_cast<std::uint16_t>(lid)); });
  };
  const auto detach = [&](const std::string& what, ibv_qp* from, const ibv_gid& gid) {
    probe_code("detach-" + what, [&] { return ibv_detach_mcast(from, &gid, 0); });
  };
  detach("before-attach", qp, group);
  attach("group", qp, group);
  attach("group-twice", qp, group);
  attach("second-qp", p.requester.qp.get(), group);
  detach("second-qp", p.requester.qp.get(), group);
  attach("not-multicast", qp, s.gid);
  attach("zero-gid", qp, ibv_gid{});
  ibv_gid mapped{};
  ::inet_pton(AF_INET6, "::ffff:239.1.1.1", mapped.raw);
  if (attach("ipv4-mapped", qp, mapped) == 0) detach("ipv4-mapped", qp, mapped);
  const auto cq = make_cq(s, 4);
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    connection_options options;
    options.type = type;
    const auto other = make_qp(s, cq.get(), options);
    attach("on-" + name(type), other.get(), group);
    detach("on-" + name(type), other.get(), group);
  }
  const auto fresh = make_qp(s, cq.get(), pair::options());
  if (attach("in-RESET", fresh.get(), group) == 0) detach("in-RESET", fresh.get(), group);
  detach("group", qp, group);
  detach("group-again", qp, group);
}

}  // namespace conformance
