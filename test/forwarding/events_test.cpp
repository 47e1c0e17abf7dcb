// Sessions that forward: events, and threads that sleep in the real library.
#include "forwarding/real_library.hpp"
#include "suite.hpp"
#include "support/loopback.hpp"
#include "support/trace.hpp"

namespace ibvxx::forwarding_events_test {
namespace {

using shim::finding_kind;
using shim::object_kind;
using test::really_clean;

TEST_CASE("forwarding: unacknowledged events are a finding, and the destroy does not hang") {
  const really_clean check;
  shim::session forwarded(shim::forwarding{}, {.destroy_deadline = std::chrono::milliseconds(1)});
  test::loopback pair;
  or_throw(req_notify_cq(pair.receive_cq));
  pair.send(1);
  test::raise_really(pair.a.get());
  ibv_async_event event{};
  CHECK(pair.next_event() == pair.receive_cq.get());
  REQUIRE(ibv_get_async_event(pair.context.get(), &event) == 0);
  CHECK(event.element.qp == pair.a.get());
  CHECK(forwarded.findings().empty());
  CHECK(pair.a.reset());
  CHECK(pair.b.reset());
  CHECK(pair.receive_cq.reset());
  const auto findings = forwarded.findings();
  INFO(test::lines(findings));
  CHECK(findings.size() == 2);
  CHECK(test::count(findings, finding_kind::unacknowledged_events) == 2);
  forwarded.tolerate(finding_kind::leak);
  static_cast<void>(forwarded.finish());
}

TEST_CASE(
    "forwarding: one acknowledgement too many is a finding, and does not reach the real library") {
  const really_clean check;
  shim::session s(shim::forwarding{}, {.destroy_deadline = std::chrono::milliseconds(1)});
  {
    test::loopback pair;
    or_throw(req_notify_cq(pair.receive_cq));
    pair.send(1);
    ibv_cq* const named = pair.next_event();
    ibv_ack_cq_events(named, 2);
    CHECK(test::count(s.findings(), finding_kind::over_acknowledged_events) == 1);
  }
  CHECK(s.live() == 0);
  CHECK(s.finish().size() == 2);  // and the destroy that libibverbs would have hung in
}

TEST_CASE("forwarding: a thread that sleeps in the real library does not block other threads") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  {
    test::loopback pair;
    or_throw(req_notify_cq(pair.receive_cq));
    std::thread sleeper([&pair] { ibv_ack_cq_events(pair.next_event(), 1); });
    while (s.calls(verb::get_cq_event) == 0) std::this_thread::yield();
    pair.send(1);
    sleeper.join();
    CHECK(s.calls(verb::ack_cq_events) == 1);
  }
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE("forwarding: a thread that sleeps in the real library may wake after the session's end") {
  const really_clean check;
  std::optional<test::loopback> pair;
  ibv_cq* named = nullptr;
  std::thread sleeper;
  {
    shim::session s{shim::forwarding{}};
    pair.emplace();
    or_throw(req_notify_cq(pair->receive_cq));
    sleeper = std::thread([&] {
      named = pair->next_event();
      ibv_ack_cq_events(named, 1);
    });
    while (s.calls(verb::get_cq_event) == 0) std::this_thread::yield();
    s.tolerate(finding_kind::leak);
    CHECK(test::lines(s.finish()).empty());
  }
  pair->send(1);
  sleeper.join();
  CHECK(named == pair->receive_cq.get());
  pair.reset();
}

TEST_CASE("forwarding: another thread may acknowledge while the destroy waits") {
  const really_clean check;
  shim::session s(shim::forwarding{}, {.destroy_deadline = std::chrono::seconds(20)});
  {
    test::loopback pair;
    or_throw(req_notify_cq(pair.receive_cq));
    pair.send(1);
    ibv_cq* const named = pair.next_event();
    std::thread other([named] { ibv_ack_cq_events(named, 1); });
    REQUIRE(pair.a.reset());
    REQUIRE(pair.b.reset());
    CHECK(pair.receive_cq.reset());
    other.join();
  }
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE(
    "forwarding: threads register memory at the same time, and none waits for another's call") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    auto pd = or_throw(alloc_pd(context));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&pd] {
        std::byte memory[64] = {};
        for (int i = 0; i < 100; ++i)
          if (auto mr = reg_mr(pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE))
            or_throw(mr->reset());
      });
    for (std::thread& one : threads) one.join();
    CHECK(s.calls(verb::dereg_mr) == 400);
    CHECK(s.live(object_kind::mr) == 0);
  }
  CHECK(test::lines(s.finish()).empty());
}

}  // namespace
}  // namespace ibvxx::forwarding_events_test
