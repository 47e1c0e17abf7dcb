// Completions that fail, are lost, or are held, by rule.
#include "suite.hpp"
#include "support/loopback.hpp"
#include "support/refusal.hpp"
#include "support/trace.hpp"

namespace ibvxx::shim_completions_test {

namespace {

using test::reason;

using shim::finding_kind;

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// Everything that is there, as pairs of wr_id and status.
std::vector<std::pair<std::uint64_t, ibv_wc_status>> drain(const unique_cq& cq) {
  std::vector<std::pair<std::uint64_t, ibv_wc_status>> all;
  ibv_wc done[16];
  for (;;) {
    const std::size_t count = poll_cq(cq, done).value();
    if (count == 0) return all;
    for (std::size_t i = 0; i < count; ++i) all.emplace_back(done[i].wr_id, done[i].status);
  }
}

using expected_list = std::vector<std::pair<std::uint64_t, ibv_wc_status>>;

struct fixture {
  shim::session s;
  std::optional<test::loopback> pair{std::in_place};

  explicit fixture(const shim::simulated& machine = {}) : s(machine) {}
  [[nodiscard]] ibv_qp_state state(const unique_qp& qp) const {
    return query_qp(qp, IBV_QP_STATE)->attr.qp_state;
  }
  void write(std::uint64_t wr_id) {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(pair->memory), 16, pair->region->lkey};
    ibv_send_wr request{};
    request.wr_id = wr_id;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {reinterpret_cast<std::uintptr_t>(pair->memory) + 128, pair->region->rkey};
    or_throw(post_send(pair->a, &request));
  }
  std::vector<shim::finding> finish() {
    pair.reset();
    return s.finish();
  }
  void end() {
    const auto findings = finish();
    INFO(test::lines(findings));
    CHECK(findings.empty());
  }
};

}  // namespace

TEST_CASE("a request fails by rule: the queue pair breaks, and the rest is flushed") {
  fixture f;
  f.s.complete(f.pair->a.get()).nth(2).with(IBV_WC_RETRY_EXC_ERR);
  ibv_recv_wr posted{77, nullptr, nullptr, 0};
  or_throw(post_recv(f.pair->a, &posted));
  f.pair->send(1);
  CHECK(f.state(f.pair->a) == IBV_QPS_RTS);
  f.pair->send(2);
  CHECK(f.state(f.pair->a) == IBV_QPS_ERR);
  f.pair->send(3);
  CHECK(drain(f.pair->send_cq) ==
        expected_list{{1, IBV_WC_SUCCESS}, {2, IBV_WC_RETRY_EXC_ERR}, {3, IBV_WC_WR_FLUSH_ERR}});
  // The second message never arrived, and a's own receive came back.
  CHECK(drain(f.pair->receive_cq) == expected_list{{1, IBV_WC_SUCCESS}, {77, IBV_WC_WR_FLUSH_ERR}});
  CHECK(f.state(f.pair->b) == IBV_QPS_RTS);
  f.end();
}

TEST_CASE("a request fails after its effect: the data arrived") {
  fixture f;
  f.s.complete(f.pair->a.get()).after_effect().with(IBV_WC_RETRY_EXC_ERR);
  f.pair->send(1);
  CHECK(drain(f.pair->send_cq) == expected_list{{1, IBV_WC_RETRY_EXC_ERR}});
  CHECK(drain(f.pair->receive_cq) == expected_list{{1, IBV_WC_SUCCESS}});
  CHECK(f.state(f.pair->a) == IBV_QPS_ERR);
  f.end();
}

TEST_CASE("a rule may apply to one opcode, and fire several times") {
  fixture f;
  f.s.complete(f.pair->a.get()).opcode(IBV_WR_RDMA_WRITE).times(2).lose();
  f.pair->send(1);
  for (std::uint64_t i = 2; i <= 4; ++i) f.write(i);
  CHECK(drain(f.pair->send_cq) == expected_list{{1, IBV_WC_SUCCESS}, {4, IBV_WC_SUCCESS}});
  CHECK(f.state(f.pair->a) == IBV_QPS_RTS);
  f.end();
}

TEST_CASE("a receive fails by rule: both ends break, each with its own status") {
  fixture f;
  f.s.complete_receive(f.pair->b.get()).with(IBV_WC_LOC_PROT_ERR);
  f.pair->send(1);
  CHECK(drain(f.pair->receive_cq) == expected_list{{1, IBV_WC_LOC_PROT_ERR}});
  CHECK(drain(f.pair->send_cq) == expected_list{{1, IBV_WC_REM_OP_ERR}});
  CHECK(f.state(f.pair->a) == IBV_QPS_ERR);
  CHECK(f.state(f.pair->b) == IBV_QPS_ERR);
  f.end();
}

TEST_CASE("the completion of a receive is lost: the sender succeeds") {
  fixture f;
  f.s.complete_receive(f.pair->b.get()).nth(2).opcode(IBV_WR_SEND).lose();
  for (std::uint64_t i = 1; i <= 3; ++i) f.pair->send(i);
  CHECK(drain(f.pair->send_cq).size() == 3);
  CHECK(drain(f.pair->receive_cq) == expected_list{{1, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}});
  f.end();
}

TEST_CASE("a rule fails a request that had to wait, when it is carried out") {
  fixture f;
  ibv_send_wr request{};
  request.wr_id = 5;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  for (int i = 0; i < 2; ++i) or_throw(post_send(f.pair->a, &request));  // nothing is posted there
  f.s.complete(f.pair->a.get()).with(IBV_WC_RNR_RETRY_EXC_ERR);
  request.wr_id = 6;
  or_throw(post_send(f.pair->a, &request));
  CHECK(drain(f.pair->send_cq).empty());
  ibv_recv_wr receive{};
  for (int i = 0; i < 2; ++i) or_throw(post_recv(f.pair->b, &receive));
  CHECK(drain(f.pair->send_cq) ==
        expected_list{{5, IBV_WC_SUCCESS}, {5, IBV_WC_SUCCESS}, {6, IBV_WC_RNR_RETRY_EXC_ERR}});
  f.end();
}

TEST_CASE(
    "held completions are delivered when the test releases them, in order, with their events") {
  fixture f;
  or_throw(set_nonblocking(f.pair->channel->fd));
  f.s.hold_completions(f.pair->send_cq.get());
  or_throw(req_notify_cq(f.pair->send_cq));
  for (std::uint64_t i = 1; i <= 3; ++i) f.pair->send(i);
  CHECK(drain(f.pair->send_cq).empty());
  CHECK(drain(f.pair->receive_cq).size() == 3);
  CHECK_FALSE(get_cq_event(f.pair->channel)->has_value());
  CHECK(f.s.held_completions(f.pair->send_cq.get()) == 3);
  CHECK(f.s.release_completions(f.pair->send_cq.get(), 1) == 1);
  CHECK(drain(f.pair->send_cq) == expected_list{{1, IBV_WC_SUCCESS}});
  CHECK(get_cq_event(f.pair->channel)->has_value());
  f.pair->send(4);
  CHECK(drain(f.pair->send_cq).empty());
  CHECK(f.s.release_completions(f.pair->send_cq.get()) == 3);
  f.pair->send(5);
  CHECK(drain(f.pair->send_cq) ==
        expected_list{
            {2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}, {4, IBV_WC_SUCCESS}, {5, IBV_WC_SUCCESS}});
  f.end();
}

TEST_CASE("a queue that is destroyed with held completions drops them") {
  fixture f;
  f.s.hold_completions(f.pair->send_cq.get());
  f.pair->send(1);
  f.end();
}

TEST_CASE("completion rules that never fire are findings, unless they are cleared") {
  for (const bool cleared : {false, true}) {
    fixture f;
    f.s.complete(f.pair->a.get()).nth(9).with(IBV_WC_RETRY_EXC_ERR);
    f.s.complete_receive(f.pair->b.get()).nth(9).lose();
    f.s.hold_completions(f.pair->receive_cq.get());
    if (cleared) f.s.clear_rules();
    const auto findings = f.finish();
    INFO(test::lines(findings));
    REQUIRE(findings.size() == (cleared ? 0 : 3));
    if (cleared) continue;
    CHECK(test::count(findings, finding_kind::unfired_rule) == 3);
    CHECK(contains(findings[0].text,
                   "send on QP#1 of sim0, matching request 9 -> "
                   "IBV_WC_RETRY_EXC_ERR, once never fired"));
    CHECK(contains(findings[1].text, "receive on QP#2 of sim0"));
    CHECK(contains(findings[2].text, "hold_completions on CQ#2 of sim0 held no completion"));
  }
}

TEST_CASE("a rule for a request that is flushed first has not fired") {
  fixture f;
  f.s.complete(f.pair->a.get()).nth(2).with(IBV_WC_RETRY_EXC_ERR);
  f.s.complete(f.pair->a.get()).with(IBV_WC_LOC_PROT_ERR);
  f.pair->send(1);
  f.pair->send(2);
  CHECK(drain(f.pair->send_cq) ==
        expected_list{{1, IBV_WC_LOC_PROT_ERR}, {2, IBV_WC_WR_FLUSH_ERR}});
  CHECK(test::count(f.finish(), finding_kind::unfired_rule) == 1);
}

TEST_CASE("rules about completions that make no sense are refused with the reason") {
  fixture f;
  ibv_qp* qp = f.pair->a.get();
  ibv_cq* cq = f.pair->send_cq.get();
  auto& s = f.s;
  CHECK(contains(reason([&] { s.complete(nullptr).lose(); }), "no live QP"));
  CHECK(contains(reason([&] { s.complete(reinterpret_cast<ibv_qp*>(cq)).lose(); }), "no live QP"));
  CHECK(contains(reason([&] { s.complete(qp).nth(0).lose(); }), "count from 1"));
  CHECK(contains(reason([&] { s.complete(qp).times(0).lose(); }), "would inject nothing"));
  CHECK(contains(reason([&] { s.complete(qp).with(IBV_WC_SUCCESS); }), "is no error"));
  CHECK(contains(reason([&] { s.complete(qp).with(static_cast<ibv_wc_status>(31)); }),
                 "is no error"));
  CHECK(contains(reason([&] { s.complete_receive(qp).with(IBV_WC_RETRY_EXC_ERR); }),
                 "reports the responder to a requester"));
  CHECK(contains(reason([&] { s.complete_receive(qp).opcode(IBV_WR_RDMA_READ).lose(); }),
                 "take no receive"));
  CHECK(contains(reason([&] { s.complete_receive(qp).after_effect().lose(); }), "has completed"));
  CHECK(contains(reason([&] { s.complete(qp).after_effect().lose(); }), "about a failure"));
  CHECK(contains(reason([&] { s.release_completions(cq); }), "are not held"));
  {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.cap = {1, 1, 1, 1, 0};
    attributes.qp_type = IBV_QPT_UD;
    auto datagrams = or_throw(create_qp(f.pair->pd, attributes));
    CHECK(contains(reason([&] { s.complete(datagrams.get()).with(IBV_WC_RETRY_EXC_ERR); }),
                   "gets no responses"));
  }
  s.hold_completions(cq);
  CHECK(contains(reason([&] { s.hold_completions(cq); }), "held already"));
  s.clear_rules();
  f.end();
}

}  // namespace ibvxx::shim_completions_test
