// Cases from the field: waiting for completions of requests that are carried out.
#include "suite.hpp"
#include "support/loopback.hpp"
#include "support/trace.hpp"

namespace ibvxx::waiting_cases {

namespace {

std::string findings_of(shim::session& s) {
  return test::lines(s.finish());
}

}  // namespace

TEST_CASE("two queue pairs connect by the toolkit's steps, and a message arrives") {
  shim::session s;
  {
    test::loopback pair;
    pair.send(7);
    ibv_wc completions[4];
    REQUIRE(poll_cq(pair.send_cq, completions).value() == 1);
    CHECK(completions[0].status == IBV_WC_SUCCESS);
    CHECK(completions[0].wr_id == 7);
    REQUIRE(poll_cq(pair.receive_cq, completions).value() == 1);
    CHECK(completions[0].opcode == IBV_WC_RECV);
    CHECK(completions[0].byte_len == 16);
  }
  CHECK(findings_of(s) == "");
}

TEST_CASE(
    "case 17: a completion between the last empty poll and the arming is returned without "
    "sleeping") {
  shim::session s;
  {
    test::loopback pair;
    ibv_cq* const queues[] = {pair.receive_cq.get(), pair.send_cq.get()};
    auto waiter = or_throw(cq_waiter::create(pair.channel, queues));
    std::atomic<bool> armed{false}, sent{false};
    std::thread sender([&] {
      while (!armed) std::this_thread::yield();
      pair.send(1);
      sent = true;
    });
    // At the first arming both queues were found empty; what is sent now raises no event.
    s.at(verb::req_notify_cq).run([&] {
      armed = true;
      while (!sent) std::this_thread::yield();
    });
    ibv_wc completions[4];
    const auto began = std::chrono::steady_clock::now();
    const auto answer = waiter.wait(completions, std::chrono::seconds(10));
    const auto took = std::chrono::steady_clock::now() - began;
    sender.join();
    REQUIRE(answer);
    CHECK(answer->what == cq_waiter::outcome::completions);
    CHECK(answer->count == 1);
    CHECK(took < std::chrono::seconds(5));  // it did not sleep: no event would have woken it
    CHECK(s.calls(verb::get_cq_event) == 0);
    const auto other = waiter.wait(completions, std::chrono::milliseconds(5000));
    CHECK(other->what == cq_waiter::outcome::completions);
    CHECK(other->queue != answer->queue);
  }
  CHECK(findings_of(s) == "");
}

TEST_CASE(
    "case 17: an event wakes a sleeping thread; completions are returned in batches, from the "
    "queues in turn") {
  shim::session s;
  {
    test::loopback pair;
    ibv_cq* const queues[] = {pair.receive_cq.get(), pair.send_cq.get()};
    auto waiter = or_throw(cq_waiter::create(pair.channel, queues));
    constexpr std::size_t messages = 200;
    std::atomic<std::size_t> taken{0};
    std::thread sender([&] {
      for (std::size_t i = 0; i < messages; ++i) {
        while (taken + 8 < 2 * i) std::this_thread::yield();
        pair.send(i);
      }
    });
    std::size_t counts[2] = {};
    ibv_wc completions[4];
    while (counts[0] + counts[1] < 2 * messages) {
      const auto answer = waiter.wait(completions, std::chrono::milliseconds(10000));
      REQUIRE(answer);
      REQUIRE(answer->what == cq_waiter::outcome::completions);
      counts[answer->queue] += answer->count;
      taken += answer->count;
    }
    sender.join();
    CHECK(counts[0] == messages);
    CHECK(counts[1] == messages);
  }
  CHECK(findings_of(s) == "");
}

TEST_CASE("reset() of a context with connected queue pairs and posted requests leaves nothing") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = context.cq(0);
  attributes.cap = {4, 4, 1, 1, 0};
  attributes.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = or_throw(context.create_qp(attributes));
  REQUIRE(qp_to_init(qp));
  static std::byte memory[64];
  ibv_mr* const mr = or_throw(context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE));
  ibv_sge piece{reinterpret_cast<std::uint64_t>(memory), sizeof memory, mr->lkey};
  ibv_recv_wr receive{1, nullptr, &piece, 1};
  REQUIRE(post_recv(qp, &receive));
  CHECK(context.reset());
  CHECK(s.live() == 0);
  CHECK(findings_of(s) == "");
}

}  // namespace ibvxx::waiting_cases
