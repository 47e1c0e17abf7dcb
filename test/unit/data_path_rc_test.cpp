// What connected queue pairs carry: every operation, and every shape of its memory.
#include "suite.hpp"
#include "support/queue_pairs.hpp"
#include "support/trace.hpp"

namespace ibvxx::data_path_rc_test {
namespace {

using test::drain;
using test::pair_options;
using test::polled;
using test::queue_pairs;
using test::receive;
using test::request;

/// The same on Soft-RoCE and on hardware, on one device and between two.
template <class Body>
void everywhere(Body&& body) {
  for (const auto profile : {test::device_profile::soft_roce, test::device_profile::hardware})
    for (const char* device_b : {"sim0", "sim1"}) {
      shim::session s(test::two_devices(profile));
      INFO((profile == test::device_profile::hardware ? "hardware, " : "Soft-RoCE, ") << device_b);
      {
        queue_pairs pair(pair_options{.device_b = device_b});
        if constexpr (requires { body(pair, profile); })
          body(pair, profile);
        else
          body(pair);
      }
      CHECK(test::lines(s.finish()) == "");
    }
}

}  // namespace

TEST_CASE("a send arrives in the first receive, whose completion has length and source") {
  everywhere([](queue_pairs& pair) {
    pair.a.fill(0, "to be sent");
    CHECK(receive(pair.b.qp, 5, {pair.b.piece(100, 64)}) == 0);
    CHECK(receive(pair.b.qp, 6, {pair.b.piece(200, 64)}) == 0);
    CHECK(request(7, IBV_WR_SEND, {pair.a.piece(0, 10)}).post(pair.a.qp) == 0);
    const auto sent = drain(pair.a.send_cq);
    REQUIRE(sent.size() == 1);
    CHECK(test::told(sent[0]) == "7 SUCCESS SEND");
    CHECK(sent[0].qp_num == pair.a.qp->qp_num);
    const auto received = drain(pair.b.recv_cq);
    REQUIRE(received.size() == 1);
    CHECK(test::told(received[0]) == "5 SUCCESS RECV 10");
    CHECK(received[0].qp_num == pair.b.qp->qp_num);
    CHECK((received[0].wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)) == 0);
    CHECK(pair.b.text(100, 12) == std::string("to be sent\0\0", 12));
    CHECK(pair.b.text(200, 1) == std::string(1, '\0'));
    CHECK(drain(pair.a.recv_cq).empty());
    CHECK(drain(pair.b.send_cq).empty());
  });
}

TEST_CASE("immediate data is in the receive's completion, in network order") {
  everywhere([](queue_pairs& pair) {
    pair.a.fill(0, "message");
    CHECK(receive(pair.b.qp, 1, {pair.b.piece(0, 64)}) == 0);
    CHECK(request(2, IBV_WR_SEND_WITH_IMM, {pair.a.piece(0, 7)})
              .immediate(0xaabbccdd)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "2 SUCCESS SEND");
    const auto received = drain(pair.b.recv_cq);
    REQUIRE(received.size() == 1);
    CHECK(test::told(received[0]) == "1 SUCCESS RECV 7");
    CHECK((received[0].wc_flags & IBV_WC_WITH_IMM) != 0);
    CHECK(received[0].imm_data == htobe32(0xaabbccdd));
    CHECK(pair.b.text(0, 7) == "message");
  });
}

TEST_CASE("an RDMA write changes the peer's memory, without a completion or an event there") {
  everywhere([](queue_pairs& pair) {
    pair.a.fill(0, "written");
    CHECK(request(1, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 7)}).to(pair.b, 1000).post(pair.a.qp) ==
          0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS RDMA_WRITE");
    CHECK(pair.b.text(999, 9) == std::string("\0written\0", 9));
    CHECK(drain(pair.b.recv_cq).empty());
    CHECK(receive(pair.b.qp, 2, {pair.b.piece(0, 64)}) == 0);
    CHECK(request(3, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 7)}).to(pair.b, 0).post(pair.a.qp) == 0);
    CHECK(drain(pair.b.recv_cq).empty());  // no receive is taken either
  });
}

TEST_CASE("an RDMA write with immediate takes a receive and does not use its memory") {
  everywhere([](queue_pairs& pair) {
    pair.a.fill(0, "written");
    CHECK(receive(pair.b.qp, 4, {pair.b.piece(0, 2)}) == 0);  // smaller than the message
    CHECK(request(1, IBV_WR_RDMA_WRITE_WITH_IMM, {pair.a.piece(0, 7)})
              .to(pair.b, 1000)
              .immediate(77)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS RDMA_WRITE");
    const auto received = drain(pair.b.recv_cq);
    REQUIRE(received.size() == 1);
    CHECK(test::told(received[0]) == "4 SUCCESS RECV_RDMA_WITH_IMM 7");
    CHECK(received[0].imm_data == htobe32(77));
    CHECK(pair.b.text(1000, 7) == "written");
    CHECK(pair.b.text(0, 2) == std::string(2, '\0'));
  });
}

TEST_CASE("an RDMA read fetches the peer's memory") {
  everywhere([](queue_pairs& pair) {
    pair.b.fill(300, "read me");
    CHECK(request(1, IBV_WR_RDMA_READ, {pair.a.piece(8, 7)}).to(pair.b, 300).post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS RDMA_READ 7");
    CHECK(pair.a.text(7, 9) == std::string("\0read me\0", 9));
  });
}

TEST_CASE("compare and swap stores where the comparison holds, and returns what was there") {
  everywhere([](queue_pairs& pair) {
    pair.b.set_word(64, 10);
    CHECK(request(1, IBV_WR_ATOMIC_CMP_AND_SWP, {pair.a.piece(0, 8)})
              .atomic(pair.b, 64, 10, 20)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS COMP_SWAP 8");
    CHECK(pair.a.word(0) == 10);
    CHECK(pair.b.word(64) == 20);
    CHECK(request(2, IBV_WR_ATOMIC_CMP_AND_SWP, {pair.a.piece(8, 8)})
              .atomic(pair.b, 64, 10, 30)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "2 SUCCESS COMP_SWAP 8");
    CHECK(pair.a.word(8) == 20);
    CHECK(pair.b.word(64) == 20);
  });
}

TEST_CASE("fetch and add adds, wrapping around, and returns what was there") {
  everywhere([](queue_pairs& pair) {
    pair.b.set_word(64, UINT64_MAX);
    pair.b.set_word(72, 5);
    CHECK(request(1, IBV_WR_ATOMIC_FETCH_AND_ADD, {pair.a.piece(0, 8)})
              .atomic(pair.b, 64, 3)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS FETCH_ADD 8");
    CHECK(pair.a.word(0) == UINT64_MAX);
    CHECK(pair.b.word(64) == 2);
    CHECK(pair.b.word(72) == 5);
  });
}

TEST_CASE("inline data needs no registered memory, and may be reused at once") {
  everywhere([](queue_pairs& pair) {
    char text[] = "first, second";
    const auto at = reinterpret_cast<std::uintptr_t>(text);
    // Nothing is posted yet that could take it: the request waits, and the text changes meanwhile.
    CHECK(request(1, IBV_WR_SEND, {{at, 6, 0}, {at + 6, 7, 0xdead}})
              .flags(IBV_SEND_INLINE | IBV_SEND_SIGNALED)
              .post(pair.a.qp) == 0);
    std::fill(std::begin(text), std::end(text), 'x');
    CHECK(drain(pair.a.send_cq).empty());
    CHECK(receive(pair.b.qp, 2, {pair.b.piece(0, 64)}) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS SEND");
    CHECK(polled(pair.b.recv_cq) == "2 SUCCESS RECV 13");
    CHECK(pair.b.text(0, 14) == std::string("first, second\0", 14));
  });
}

TEST_CASE("inline data beyond max_inline_data is refused when it is posted") {
  everywhere([](queue_pairs& pair, test::device_profile profile) {
    const auto most = or_throw(query_qp(pair.a.qp, IBV_QP_CAP)).init_attr.cap.max_inline_data;
    CHECK(most >= 64);
    const auto inlined = [&](std::uint32_t length) {
      return request(length, IBV_WR_RDMA_WRITE, {pair.a.piece(0, length)})
          .to(pair.b, 0)
          .flags(IBV_SEND_INLINE | IBV_SEND_SIGNALED)
          .post(pair.a.qp);
    };
    CHECK(inlined(most) == 0);
    // As the providers of mlx5 and of Soft-RoCE say it.
    CHECK(inlined(most + 1) == (profile == test::device_profile::hardware ? ENOMEM : EINVAL));
    CHECK(polled(pair.a.send_cq) == std::to_string(most) + " SUCCESS RDMA_WRITE");
  });
}

TEST_CASE("several pieces are gathered, and scattered elsewhere") {
  everywhere([](queue_pairs& pair) {
    pair.a.fill(0, "one");
    pair.a.fill(100, "two");
    pair.a.fill(200, "three");
    const std::vector<ibv_sge> pieces{pair.a.piece(0, 3), pair.a.piece(100, 3), pair.a.piece(50, 0),
                                      pair.a.piece(200, 5)};
    CHECK(receive(pair.b.qp, 1, {pair.b.piece(0, 4), pair.b.piece(64, 0), pair.b.piece(128, 40)}) ==
          0);
    CHECK(request(2, IBV_WR_SEND, pieces).post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "2 SUCCESS SEND");
    CHECK(polled(pair.b.recv_cq) == "1 SUCCESS RECV 11");
    CHECK(pair.b.text(0, 5) == std::string("onet\0", 5));
    CHECK(pair.b.text(128, 8) == std::string("wothree\0", 8));

    CHECK(request(3, IBV_WR_RDMA_WRITE, pieces).to(pair.b, 1000).post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "3 SUCCESS RDMA_WRITE");
    CHECK(pair.b.text(1000, 12) == std::string("onetwothree\0", 12));

    pair.b.fill(2000, "scattered");
    CHECK(request(4, IBV_WR_RDMA_READ, {pair.a.piece(300, 2), pair.a.piece(400, 7)})
              .to(pair.b, 2000)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "4 SUCCESS RDMA_READ 9");
    CHECK(pair.a.text(300, 3) == std::string("sc\0", 3));
    CHECK(pair.a.text(400, 8) == std::string("attered\0", 8));
  });
}

TEST_CASE("what moves no byte needs no key: send, write and read of nothing succeed") {
  everywhere([](queue_pairs& pair) {
    CHECK(receive(pair.b.qp, 1, {}) == 0);
    CHECK(request(2, IBV_WR_SEND, {}).post(pair.a.qp) == 0);
    CHECK(request(3, IBV_WR_RDMA_WRITE, {}).to(1, 0x7fffff01).post(pair.a.qp) == 0);
    CHECK(request(4, IBV_WR_RDMA_READ, {{3, 0, 0x7fffff01}}).to(1, 0x7fffff01).post(pair.a.qp) ==
          0);
    CHECK(polled(pair.a.send_cq) == "2 SUCCESS SEND; 3 SUCCESS RDMA_WRITE; 4 SUCCESS RDMA_READ 0");
    CHECK(polled(pair.b.recv_cq) == "1 SUCCESS RECV 0");
  });
}

TEST_CASE("an unsignaled success leaves no completion; sq_sig_all makes one of each") {
  shim::session s;
  {
    queue_pairs pair;
    for (std::uint64_t id = 1; id <= 3; ++id)
      CHECK(request(id, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 8)})
                .to(pair.b, 0)
                .flags(id == 3 ? IBV_SEND_SIGNALED : 0)
                .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "3 SUCCESS RDMA_WRITE");
    queue_pairs all(pair_options{.signal_all = true});
    for (std::uint64_t id = 1; id <= 2; ++id)
      CHECK(request(id, IBV_WR_RDMA_WRITE, {all.a.piece(0, 8)})
                .to(all.b, 0)
                .flags(0)
                .post(all.a.qp) == 0);
    CHECK(polled(all.a.send_cq) == "1 SUCCESS RDMA_WRITE; 2 SUCCESS RDMA_WRITE");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("memory registered under another address is named by that address") {
  shim::session s;
  {
    queue_pairs pair;
    const std::uint64_t iova = 0x40000000 + pair.b.at() % 4096;
    auto region = or_throw(reg_mr_iova(pair.b.pd, pair.b.memory, 4096, iova, test::every_access));
    pair.a.fill(0, "elsewhere");
    CHECK(request(1, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 9)})
              .to(iova + 64, region->rkey)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS RDMA_WRITE");
    CHECK(pair.b.text(64, 9) == "elsewhere");
    CHECK(request(2, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 9)})
              .to(pair.b.at(64), region->rkey)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "2 REM_ACCESS_ERR");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("a message may be as long as several path MTUs, and requests stay in order") {
  everywhere([](queue_pairs& pair) {
    for (std::size_t i = 0; i < 4000; ++i) pair.a.memory[i] = static_cast<char>(i % 251);
    CHECK(request(1, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 4000)}).to(pair.b, 96).post(pair.a.qp) ==
          0);
    CHECK(request(2, IBV_WR_RDMA_READ, {pair.a.piece(4000, 1)}).to(pair.b, 4095).post(pair.a.qp) ==
          0);
    CHECK(request(3, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 1)})
              .to(pair.b, 0)
              .flags(IBV_SEND_FENCE | IBV_SEND_SIGNALED)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) ==
          "1 SUCCESS RDMA_WRITE; 2 SUCCESS RDMA_READ 1; 3 SUCCESS RDMA_WRITE");
    CHECK(std::equal(pair.a.memory, pair.a.memory + 4000, pair.b.memory + 96));
    CHECK(pair.a.memory[4000] == pair.b.memory[4095]);
  });
}

}  // namespace ibvxx::data_path_rc_test
