// Datagrams: to one queue pair and to multicast groups, what is lost, and the unreliable kinds of
// connection.
#include <cstring>

#include "suite.hpp"
#include "support/profiles.hpp"
#include "support/queue_pairs.hpp"
#include "support/trace.hpp"

namespace ibvxx::data_path_datagram_test {
namespace {

using test::on_both_profiles;

using test::device_profile;
using test::datagram_key;
using test::drain;
using test::end_point;
using test::pair_options;
using test::polled;
using test::queue_pairs;
using test::receive;
using test::request;

constexpr std::size_t header = sizeof(ibv_grh);
static_assert(header == 40);

ibv_ah_attr path_to(const ibv_gid& gid, std::uint8_t sgid_index = 1) {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.dgid = gid;
  path.grh.sgid_index = sgid_index;
  path.grh.hop_limit = 17;
  path.grh.traffic_class = 0x68;
  return path;
}

unique_ah handle_to(const end_point& from, const ibv_gid& gid, std::uint8_t sgid_index = 1) {
  return or_throw(create_ah(from.pd, path_to(gid, sgid_index)));
}

constexpr pair_options datagrams(const char* device_b = "sim1") {
  pair_options options;
  options.type = IBV_QPT_UD;
  options.device_b = device_b;
  return options;
}

}  // namespace

TEST_CASE("a datagram arrives behind a 40-byte header with its source") {
  on_both_profiles([](shim::session&, device_profile) {
    queue_pairs pair(datagrams());
    const auto ah = handle_to(pair.a, pair.b.address.gid);
    pair.a.fill(0, "datagram");
    CHECK(receive(pair.b.qp, 1, {pair.b.piece(0, 128)}) == 0);
    CHECK(request(2, IBV_WR_SEND_WITH_IMM, {pair.a.piece(0, 8)})
              .datagram(ah.get(), pair.b.qp->qp_num)
              .immediate(99)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "2 SUCCESS SEND");
    const auto received = drain(pair.b.recv_cq);
    REQUIRE(received.size() == 1);
    CHECK(test::told(received[0]) == "1 SUCCESS RECV 48");
    CHECK(received[0].src_qp == pair.a.qp->qp_num);
    CHECK(received[0].wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM));
    CHECK(received[0].imm_data == htobe32(99));
    CHECK(pair.b.text(header, 9) == std::string("datagram\0", 9));
    // RoCE v2 over IPv4: 20 zeros, then an IPv4 header (measured).
    CHECK(pair.b.text(0, 20) == std::string(20, '\0'));
    CHECK(pair.b.text(20, 2) == "\x45\x68");
    CHECK(pair.b.text(28, 2) == "\x11\x11");  // hop limit 17, UDP
    CHECK(pair.b.text(32, 8) == std::string("\x0a\0\0\x0a\x0a\0\0\x0b", 8));
    std::uint32_t sum = 0;  // a header's 16-bit words, its checksum among them, sum up to all ones
    for (std::size_t i = 20; i < header; i += 2)
      sum += static_cast<std::uint32_t>(static_cast<unsigned char>(pair.b.memory[i]) << 8 |
                                        static_cast<unsigned char>(pair.b.memory[i + 1]));
    CHECK((sum & 0xffff) + (sum >> 16) == 0xffff);
  });
}

TEST_CASE("an address handle made from a datagram's header reaches its sender") {
  on_both_profiles([](shim::session&, device_profile) {
    for (std::uint8_t gid_index = 0; gid_index < 2; ++gid_index) {  // IPv6 and IPv4
      queue_pairs pair(datagrams());
      const auto there = or_throw(query_gid_ex(pair.b.context, 1, gid_index)).gid;
      const auto ah = handle_to(pair.a, there, gid_index);
      CHECK(receive(pair.b.qp, 1, {pair.b.piece(0, 128)}) == 0);
      CHECK(request(2, IBV_WR_SEND, {pair.a.piece(0, 8)})
                .datagram(ah.get(), pair.b.qp->qp_num)
                .post(pair.a.qp) == 0);
      const auto received = drain(pair.b.recv_cq);
      REQUIRE(received.size() == 1);
      ibv_grh grh;
      std::memcpy(&grh, pair.b.memory, sizeof grh);
      const auto back = or_throw(create_ah_from_wc(pair.b.pd, received[0], &grh, 1));
      pair.b.fill(512, "answer");
      CHECK(receive(pair.a.qp, 3, {pair.a.piece(256, 128)}) == 0);
      CHECK(request(4, IBV_WR_SEND, {pair.b.piece(512, 6)})
                .datagram(back.get(), received[0].src_qp)
                .post(pair.b.qp) == 0);
      CHECK(polled(pair.a.recv_cq) == "3 SUCCESS RECV 46");
      CHECK(pair.a.text(256 + header, 6) == "answer");
    }
  });
}

TEST_CASE("datagrams are lost without an error: wrong key, wrong number, no receive, too long") {
  on_both_profiles([](shim::session& s, device_profile) {
    queue_pairs pair(datagrams());
    const auto ah = handle_to(pair.a, pair.b.address.gid);
    const std::uint32_t number = pair.b.qp->qp_num;
    const auto send = [&](std::uint32_t qpn, std::uint32_t key, std::size_t length) {
      CHECK(request(1, IBV_WR_SEND, {pair.a.piece(0, length)})
                .datagram(ah.get(), qpn, key)
                .post(pair.a.qp) == 0);
      CHECK(polled(pair.a.send_cq) == "1 SUCCESS SEND");
    };
    send(number, datagram_key, 8);  // no receive is posted for it
    CHECK(receive(pair.b.qp, 2, {pair.b.piece(0, 4096)}) == 0);
    CHECK(polled(pair.b.recv_cq) == "");
    send(number, datagram_key + 1, 8);
    send(number + 100, datagram_key, 8);
    send(number, datagram_key, 1025);  // the MTU is 1024
    s.set_port_state("sim1", 1, IBV_PORT_DOWN);
    send(number, datagram_key, 8);
    s.set_port_state("sim1", 1, IBV_PORT_ACTIVE);
    CHECK(polled(pair.b.recv_cq) == "");
    send(number, datagram_key, 1024);
    CHECK(polled(pair.b.recv_cq) == "2 SUCCESS RECV 1064");
    CHECK(pair.b.state() == IBV_QPS_RTS);
  });
}

TEST_CASE("a Q_Key with its top bit set means the sender's own, except on Soft-RoCE") {
  on_both_profiles([](shim::session&, device_profile profile) {
    queue_pairs pair(datagrams());
    const auto ah = handle_to(pair.a, pair.b.address.gid);
    CHECK(receive(pair.b.qp, 2, {pair.b.piece(0, 64)}) == 0);
    CHECK(request(1, IBV_WR_SEND, {pair.a.piece(0, 8)})
              .datagram(ah.get(), pair.b.qp->qp_num, 0x80000000)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.b.recv_cq) ==
          (profile == device_profile::hardware ? "2 SUCCESS RECV 48" : ""));
  });
}

TEST_CASE("a datagram that does not fit breaks the receiving queue pair, not the sender") {
  on_both_profiles([](shim::session&, device_profile profile) {
    queue_pairs pair(datagrams());
    const auto ah = handle_to(pair.a, pair.b.address.gid);
    CHECK(receive(pair.b.qp, 2, {pair.b.piece(0, 47)}) == 0);
    CHECK(request(1, IBV_WR_SEND, {pair.a.piece(0, 8)})
              .datagram(ah.get(), pair.b.qp->qp_num)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS SEND");
    CHECK(pair.a.state() == IBV_QPS_RTS);
    CHECK(polled(pair.b.recv_cq) ==
          (profile == device_profile::hardware ? "2 LOC_LEN_ERR" : "2 LOC_QP_OP_ERR"));
    CHECK(pair.b.state() == IBV_QPS_ERR);
  });
}

TEST_CASE("a local error stops an unconnected send queue: SQE on hardware, ERR on Soft-RoCE") {
  on_both_profiles([](shim::session&, device_profile profile) {
    const bool hardware = profile == device_profile::hardware;
    for (const ibv_qp_type type : {IBV_QPT_UD, IBV_QPT_UC}) {
      pair_options options = datagrams();
      options.type = type;
      queue_pairs pair(options);
      const auto ah = handle_to(pair.a, pair.b.address.gid);
      const auto send = [&](std::uint64_t id, const ibv_sge& piece) {
        request one(id, IBV_WR_SEND, {piece});
        if (type == IBV_QPT_UD) one.datagram(ah.get(), pair.b.qp->qp_num);
        return one.post(pair.a.qp);
      };
      CHECK(receive(pair.a.qp, 5, {pair.a.piece(0, 64)}) == 0);
      CHECK(send(1, {pair.a.at(), 8, 0x7fffff01}) == 0);
      CHECK(send(2, pair.a.piece(0, 8)) == 0);
      CHECK(polled(pair.a.send_cq) ==
            std::string(hardware ? "1 LOC_PROT_ERR" : "1 LOC_QP_OP_ERR") + "; 2 WR_FLUSH_ERR");
      CHECK(pair.a.state() == (hardware ? IBV_QPS_SQE : IBV_QPS_ERR));
      CHECK(polled(pair.a.recv_cq) == (hardware ? "" : "5 WR_FLUSH_ERR"));
      if (!hardware) continue;
      ibv_qp_attr up{};
      up.qp_state = IBV_QPS_RTS;
      or_throw(modify_qp(pair.a.qp, up, IBV_QP_STATE));
      CHECK(send(3, pair.a.piece(0, 8)) == 0);
      CHECK(polled(pair.a.send_cq) == "3 SUCCESS SEND");
    }
  });
}

TEST_CASE("a multicast datagram reaches every member once, on all devices, and only members") {
  on_both_profiles([](shim::session& s, device_profile) {
    const ibv_gid group = shim::gid("ff0e::ffff:239.1.2.3");
    const ibv_gid other = shim::gid("ff0e::ffff:239.1.2.4");
    queue_pairs pair(datagrams());
    end_point third("sim1", datagrams());
    third.connect_to(pair.a.address, datagrams());
    const auto ah = handle_to(pair.a, group);
    const auto send = [&] {
      CHECK(request(1, IBV_WR_SEND, {pair.a.piece(0, 8)})
                .datagram(ah.get(), 0xffffff)
                .post(pair.a.qp) == 0);
      CHECK(polled(pair.a.send_cq) == "1 SUCCESS SEND");
    };
    for (std::uint64_t id = 1; id <= 4; ++id) {
      CHECK(receive(pair.b.qp, id, {pair.b.piece(0, 64)}) == 0);
      CHECK(receive(third.qp, 10 + id, {third.piece(0, 64)}) == 0);
    }
    send();
    CHECK(polled(pair.b.recv_cq) + polled(third.recv_cq) == "");
    auto first = or_throw(attach_mcast(pair.b.qp, group, 0));
    auto second = or_throw(attach_mcast(third.qp, group, 0));
    const auto elsewhere = or_throw(attach_mcast(third.qp, other, 0));
    send();
    CHECK(polled(pair.b.recv_cq) == "1 SUCCESS RECV 48");
    CHECK(polled(third.recv_cq) == "11 SUCCESS RECV 48");
    or_throw(first.reset());
    send();
    CHECK(polled(pair.b.recv_cq) == "");
    CHECK(polled(third.recv_cq) == "12 SUCCESS RECV 48");
    s.set_port_state("sim1", 1, IBV_PORT_DOWN);
    send();
    CHECK(polled(third.recv_cq) == "");
    s.set_port_state("sim1", 1, IBV_PORT_ACTIVE);
    or_throw(second.reset());
    send();
    CHECK(polled(third.recv_cq) == "");
  });
}

TEST_CASE("on InfiniBand without a GRH the 40 bytes are there, with nothing in them") {
  shim::simulated machine{{shim::device_description::hardware()}};
  auto& port = machine.devices[0].ports[0];
  port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  port.lid = 7;
  shim::session s(machine);
  {
    pair_options options;
    options.type = IBV_QPT_UD;
    queue_pairs pair(options);
    ibv_ah_attr path{};
    path.port_num = 1;
    path.dlid = 7;
    const auto ah = or_throw(create_ah(pair.a.pd, path));
    std::fill(pair.b.memory, pair.b.memory + 64, 'x');
    CHECK(receive(pair.b.qp, 1, {pair.b.piece(0, 64)}) == 0);
    CHECK(request(2, IBV_WR_SEND, {pair.a.piece(0, 8)})
              .datagram(ah.get(), pair.b.qp->qp_num)
              .post(pair.a.qp) == 0);
    const auto received = drain(pair.b.recv_cq);
    REQUIRE(received.size() == 1);
    CHECK(received[0].byte_len == 48);
    CHECK((received[0].wc_flags & IBV_WC_GRH) == 0);
    CHECK(pair.b.text(header, 8) == std::string(8, '\0'));
    CHECK(pair.b.text(48, 16) == std::string(16, 'x'));
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("UC carries sends and writes, and loses them without an error") {
  on_both_profiles([](shim::session&, device_profile) {
    pair_options options = datagrams();
    options.type = IBV_QPT_UC;
    queue_pairs pair(options);
    pair.a.fill(0, "unsure");
    const auto send = [&](std::uint64_t id) {
      return request(id, IBV_WR_SEND, {pair.a.piece(0, 6)}).post(pair.a.qp);
    };
    CHECK(send(1) == 0);  // no receive
    CHECK(receive(pair.b.qp, 9, {pair.b.piece(0, 64)}) == 0);
    CHECK(request(2, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 6)})
              .to(pair.b.at(), 0x7fffff01)
              .post(pair.a.qp) == 0);
    CHECK(send(3) == 0);
    CHECK(request(4, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 6)}).to(pair.b, 100).post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) ==
          "1 SUCCESS SEND; 2 SUCCESS RDMA_WRITE; 3 SUCCESS SEND; 4 SUCCESS RDMA_WRITE");
    CHECK(polled(pair.b.recv_cq) == "9 SUCCESS RECV 6");
    CHECK(pair.b.text(0, 6) == "unsure");
    CHECK(pair.b.text(100, 6) == "unsure");
    CHECK(pair.b.state() == IBV_QPS_RTS);
    // UC has no operations that need an answer.
    CHECK(request(5, IBV_WR_RDMA_READ, {pair.a.piece(0, 6)}).to(pair.b, 0).post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "5 LOC_QP_OP_ERR");
  });
}

}  // namespace ibvxx::data_path_datagram_test
