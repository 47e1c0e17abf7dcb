// Cases from the field: events and waiting.
#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::events_cases {

namespace {

struct fixture {
  shim::session s;
  unique_context context = or_throw(open_device((*get_device_list())[0]));
  unique_comp_channel channel = or_throw(create_comp_channel(context));
  unique_cq a = or_throw(create_cq(context, 16, channel.get()));
  unique_cq b = or_throw(create_cq(context, 16, channel.get()));

  void end() {
    CHECK(a.reset());
    CHECK(b.reset());
    CHECK(channel.reset());
    CHECK(context.reset());
    const auto findings = s.finish();
    INFO(test::lines(findings));
    CHECK(findings.empty());
  }
};

}  // namespace

TEST_CASE("case 15: events A, B, A, then an exception: A is acknowledged twice and B once") {
  fixture f;
  REQUIRE(set_nonblocking(f.channel->fd));
  for (const auto* cq : {&f.a, &f.b, &f.a}) f.s.raise_spurious_event(cq->get());
  CHECK_THROWS([&] {
    std::vector<cq_event> events;
    for (;;) {
      auto event = or_throw(get_cq_event(f.channel));
      if (!event) break;
      events.push_back(std::move(*event));
    }
    REQUIRE(events.size() == 3);
    throw 7;
  }());
  f.end();  // a destroy with unacknowledged events would be a finding
}

TEST_CASE("case 15: acknowledging a third event of A is a finding") {
  shim::session s;
  auto context = or_throw(open_device((*get_device_list())[0]));
  auto channel = or_throw(create_comp_channel(context));
  auto a = or_throw(create_cq(context, 16, channel.get()));
  s.raise_spurious_event(a.get());
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  REQUIRE(::ibv_get_cq_event(channel.get(), &cq, &cq_context) == 0);
  ::ibv_ack_cq_events(a.get(), 2);
  CHECK(a.reset());
  CHECK(channel.reset());
  CHECK(context.reset());
  CHECK(test::count(s.finish(), shim::finding_kind::over_acknowledged_events) == 1);
}

TEST_CASE(
    "case 18: five COMM_EST, then PORT_ACTIVE, behind one edge, with one interruption: all six are "
    "read") {
  shim::session s;
  auto context = or_throw(rdma_context::open({.cqs = 1}));
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = context.cq(0);
  attributes.cap = {1, 1, 1, 1, 0};
  attributes.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = or_throw(context.create_qp(attributes));
  for (int i = 0; i < 5; ++i) s.raise(qp, IBV_EVENT_COMM_EST);
  s.raise("sim0", IBV_EVENT_PORT_ACTIVE, 1);
  epoll_event edge{};
  CHECK(::epoll_wait(context.epoll_fd(), &edge, 1, 0) == 1);
  CHECK(std::uint64_t{edge.data.u64} == static_cast<std::uint64_t>(context.device()->async_fd));
  s.fail(verb::get_async_event).nth(3).with(EINTR);
  std::vector<ibv_event_type> seen;
  CHECK(context
            .process_async_events([&](const ibv_async_event& event) {
              if (event.event_type == IBV_EVENT_COMM_EST) CHECK(event.element.qp == qp);
              seen.push_back(event.event_type);
            })
            .value() == 6);
  CHECK(seen == std::vector<ibv_event_type>{IBV_EVENT_COMM_EST, IBV_EVENT_COMM_EST,
                                            IBV_EVENT_COMM_EST, IBV_EVENT_COMM_EST,
                                            IBV_EVENT_COMM_EST, IBV_EVENT_PORT_ACTIVE});
  CHECK(s.calls(verb::ack_async_event) == 6);
  // Six reads, the interrupted one, and the one that found nothing: EAGAIN is the end.
  CHECK(s.calls(verb::get_async_event) == 8);
  CHECK(context.process_async_events().value() == 0);
  s.fail(verb::get_async_event).with(EBADF);
  CHECK(context.process_async_events().error().code() == EBADF);
  CHECK(context.reset());  // the queue pair's events are acknowledged: its destroy does not wait
  CHECK(s.finish().empty());
}

TEST_CASE(
    "cq_waiter: a timeout and stop() from another thread end the wait, a spurious event does not") {
  fixture f;
  ibv_cq* const queues[] = {f.a.get(), f.b.get()};
  auto waiter = or_throw(cq_waiter::create(f.channel, queues));
  ibv_wc completions[4];
  CHECK(waiter.wait(completions, std::chrono::milliseconds(0))->what ==
        cq_waiter::outcome::timeout);
  f.s.raise_spurious_event(f.b.get());
  const auto began = std::chrono::steady_clock::now();
  CHECK(waiter.wait(completions, std::chrono::milliseconds(30))->what ==
        cq_waiter::outcome::timeout);
  CHECK(std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(30));
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    waiter.stop();
  });
  // The longest time there is does not wrap to none.
  CHECK(waiter.wait(completions, std::chrono::milliseconds::max())->what ==
        cq_waiter::outcome::stopped);
  CHECK(waiter.wait(completions)->what == cq_waiter::outcome::stopped);
  stopper.join();
  waiter.restart();
  CHECK(waiter.wait(completions, std::chrono::milliseconds(0))->what ==
        cq_waiter::outcome::timeout);
  CHECK(waiter.wait({}, std::chrono::milliseconds(0)).error().code() == EINVAL);
  f.end();
}

TEST_CASE("cq_waiter arms each queue once, and again only after its event") {
  fixture f;
  ibv_cq* const queues[] = {f.a.get(), f.b.get()};
  auto waiter = or_throw(cq_waiter::create(f.channel, queues));
  ibv_wc completions[4];
  for (int i = 0; i < 3; ++i) CHECK(waiter.wait(completions, std::chrono::milliseconds(0)));
  CHECK(f.s.calls(verb::req_notify_cq) == 2);
  f.s.raise_spurious_event(f.a.get());
  for (int i = 0; i < 3; ++i) CHECK(waiter.wait(completions, std::chrono::milliseconds(0)));
  CHECK(f.s.calls(verb::req_notify_cq) == 3);
  f.s.fail(verb::poll_cq).with(EIO);
  CHECK(waiter.wait(completions, std::chrono::milliseconds(0)).error().call() == verb::poll_cq);
  f.end();
}

TEST_CASE("cq_waiter refuses queues of another channel, null ones, and none, naming the index") {
  fixture f;
  auto polled = or_throw(create_cq(f.context, 16));
  ibv_cq* const mixed[] = {f.a.get(), polled.get()};
  CHECK(cq_waiter::create(f.channel, mixed).error().detail() == "cqs[1] is on another channel");
  ibv_cq* const holes[] = {nullptr};
  CHECK(cq_waiter::create(f.channel, holes).error().detail() == "cqs[0] is null");
  CHECK(cq_waiter::create(f.channel, {}).error().detail() == "cqs is empty");
  CHECK(polled.reset());
  f.end();
}

}  // namespace ibvxx::events_cases
