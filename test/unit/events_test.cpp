// Events: read, acknowledged, and followed.
#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::events_test {
using shim::finding_kind;

namespace {

/// A context with two CQs on one channel.
struct fixture {
  shim::session s;
  unique_context context = or_throw(open_device((*get_device_list())[0]));
  unique_comp_channel channel = or_throw(create_comp_channel(context));
  unique_cq a = or_throw(create_cq(context, 16, channel.get(), 0, &s));
  unique_cq b = or_throw(create_cq(context, 16, channel.get()));

  fixture() {
    REQUIRE(set_nonblocking(channel->fd));
    REQUIRE(set_nonblocking(context->async_fd));
  }
  std::vector<shim::finding> end() {
    CHECK(a.reset());
    CHECK(b.reset());
    CHECK(channel.reset());
    CHECK(context.reset());
    return s.finish();
  }
};

}  // namespace

TEST_CASE("a completion event names its queue, and its guard's destructor acknowledges it") {
  fixture f;
  CHECK_FALSE(get_cq_event(f.channel)->has_value());
  f.s.raise_spurious_event(f.a.get());
  {
    auto event = get_cq_event(f.channel);
    REQUIRE(event);
    REQUIRE(*event);
    CHECK((*event)->cq() == f.a.get());
    CHECK((*event)->cq_context() == &f.s);
    cq_event moved = std::move(**event);
    CHECK((*event)->cq() == nullptr);
    CHECK(f.s.calls(verb::ack_cq_events) == 0);
  }
  CHECK(f.s.calls(verb::ack_cq_events) == 1);
  CHECK(f.end().empty());
}

TEST_CASE(
    "an interrupted read is repeated; an empty channel ends the reading; anything else is an "
    "error") {
  fixture f;
  f.s.raise_spurious_event(f.a.get());
  f.s.fail(verb::get_cq_event).with(EINTR);
  CHECK(get_cq_event(f.channel)->has_value());
  f.s.fail(verb::get_cq_event).with(EBADF);
  CHECK(get_cq_event(f.channel).error().code() == EBADF);
  f.s.fail(verb::get_async_event).with(EINTR);
  CHECK_FALSE(get_async_event(f.context)->has_value());
  f.s.fail(verb::get_async_event).with(EBADF);
  CHECK(get_async_event(f.context).error().code() == EBADF);
  CHECK(f.end().empty());
}

TEST_CASE("a batch acknowledges once for each queue, also during an exception") {
  fixture f;
  for (const auto* cq : {&f.a, &f.b, &f.a}) f.s.raise_spurious_event(cq->get());
  const auto acknowledge_by_exception = [&] {
    cq_event_batch events;
    CHECK(events.read(f.channel).value() == 3);
    REQUIRE(events.pending().size() == 2);
    CHECK(events.pending()[0].cq == f.a.get());
    CHECK(events.pending()[0].events == 2);
    CHECK(events.pending()[1].events == 1);
    CHECK(f.s.calls(verb::ack_cq_events) == 0);
    throw 7;
  };
  CHECK_THROWS(acknowledge_by_exception());
  CHECK(f.s.calls(verb::ack_cq_events) == 2);
  CHECK(f.end().empty());  // had anything been left unacknowledged, the destroys would say so
}

TEST_CASE("one queue of a batch can be acknowledged and destroyed before the batch is") {
  fixture f;
  for (const auto* cq : {&f.a, &f.b}) f.s.raise_spurious_event(cq->get());
  cq_event_batch events;
  REQUIRE(events.read(f.channel));
  events.acknowledge(f.a);
  CHECK(f.a.reset());
  CHECK(events.pending().size() == 1);
  events.acknowledge();
  events.acknowledge();
  CHECK(f.end().empty());
}

TEST_CASE("a batch with more queues than places loses nothing") {
  shim::session s;
  auto context = or_throw(open_device((*get_device_list())[0]));
  auto channel = or_throw(create_comp_channel(context));
  REQUIRE(set_nonblocking(channel->fd));
  std::vector<unique_cq> cqs;
  for (int i = 0; i < 80; ++i) {
    cqs.push_back(or_throw(create_cq(context, 1, channel.get())));
    s.raise_spurious_event(cqs.back().get());
  }
  {
    cq_event_batch events;
    CHECK(events.read(channel).value() == 80);
  }
  cqs.clear();
  CHECK(channel.reset());
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("the shim finds a destroy that would wait for ever, and one acknowledged too often") {
  fixture f;
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  f.s.raise_spurious_event(f.a.get());
  REQUIRE(::ibv_get_cq_event(f.channel.get(), &cq, &cq_context) == 0);
  ::ibv_ack_cq_events(f.b.get(), 1);  // to the wrong queue
  const auto findings = f.end();
  INFO(test::lines(findings));
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].kind == finding_kind::over_acknowledged_events);
  CHECK(findings[0].text.find("CQ#2 of sim0") == 0);
  CHECK(findings[1].kind == finding_kind::unacknowledged_events);
  CHECK(findings[1].text.find("CQ#1 of sim0, made by ibv_create_cq") == 0);
  CHECK(findings[1].text.find("1 completion events read and 0 acknowledged") != std::string::npos);
  CHECK(findings[2].kind == finding_kind::unacknowledged_events);
}

TEST_CASE(
    "a destroy waits for another thread's acknowledgement, and an event never read is dropped") {
  fixture f;
  f.s.raise_spurious_event(f.a.get());
  f.s.raise_spurious_event(f.a.get());
  auto event = get_cq_event(f.channel);
  REQUIRE(*event);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    (*event)->acknowledge();
  });
  CHECK(f.a.reset());
  late.join();
  CHECK_FALSE(get_cq_event(f.channel)->has_value());
  CHECK(f.end().empty());
}

TEST_CASE("an async event's guard acknowledges it, so that its queue can be destroyed") {
  fixture f;
  f.s.raise(f.a.get(), IBV_EVENT_CQ_ERR);
  {
    auto event = get_async_event(f.context);
    REQUIRE(event);
    REQUIRE(*event);
    CHECK((**event)->event_type == IBV_EVENT_CQ_ERR);
    CHECK((**event)->element.cq == f.a.get());
    async_event moved = std::move(**event);
    CHECK(f.s.calls(verb::ack_async_event) == 0);
  }
  CHECK(f.s.calls(verb::ack_async_event) == 1);
  f.s.raise(f.b.get(), IBV_EVENT_CQ_ERR);
  ibv_async_event raw{};
  REQUIRE(::ibv_get_async_event(f.context.get(), &raw) == 0);
  const auto findings = f.end();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == finding_kind::unacknowledged_events);
  CHECK(findings[0].text.find("async events read") != std::string::npos);
}

TEST_CASE("process_async_events follows the port, unless paused by hand") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  CHECK(context.process_async_events().value() == 0);
  s.set_port_state("sim0", 1, IBV_PORT_DOWN);
  CHECK(context.state() == context_state::enabled);  // the event is not read yet
  CHECK(context.process_async_events().value() == 1);
  CHECK(context.state() == context_state::paused);
  CHECK(context.ready());
  s.set_port_state("sim0", 1, IBV_PORT_ACTIVE);
  CHECK(context.process_async_events().value() == 1);
  CHECK(context.state() == context_state::enabled);

  CHECK(context.pause());
  s.set_port_state("sim0", 1, IBV_PORT_DOWN);
  s.set_port_state("sim0", 1, IBV_PORT_ACTIVE);
  CHECK(context.process_async_events().value() == 2);
  CHECK(context.state() == context_state::paused);
  CHECK(context.resume());
  CHECK(context.state() == context_state::enabled);
  CHECK(context.reset());
  CHECK_FALSE(context.process_async_events());
  CHECK(s.finish().empty());
}

TEST_CASE("events of another port are acknowledged and change nothing") {
  shim::device_description two;
  two.ports.resize(2);
  shim::session s(shim::simulated{{two}});
  auto context = or_throw(rdma_context::open({.port = 1}));
  s.set_port_state("sim0", 2, IBV_PORT_DOWN);
  const auto queries = s.calls(verb::query_port);
  std::vector<int> ports;
  CHECK(context
            .process_async_events(
                [&](const ibv_async_event& event) { ports.push_back(event.element.port_num); })
            .value() == 1);
  CHECK(ports == std::vector<int>{2});
  CHECK(s.calls(verb::query_port) == queries);
  CHECK(s.calls(verb::ack_async_event) == 1);
  CHECK(context.state() == context_state::enabled);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

// Case 32.
TEST_CASE(
    "after a GID change the GID is chosen again; without a usable GID the context pauses until "
    "there is one") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  CHECK(context.gid().entry.gid_index == 1);
  s.set_gid("sim0", 1, 1, {});
  CHECK(context.process_async_events().value() == 1);
  CHECK(context.gid().entry.gid_index == 0);
  CHECK(context.state() == context_state::enabled);

  s.set_gid("sim0", 1, 0, {});
  const auto none = context.process_async_events();
  REQUIRE_FALSE(none);
  CHECK(none.error().code() == ENODATA);
  CHECK(none.error().message() ==
        "ibv_query_gid_table on sim0: No data available (ENODATA): no usable GID: port 1 has no "
        "entry");
  CHECK(context.state() == context_state::paused);
  CHECK_FALSE(context.gid().usable());

  s.set_gid("sim0", 1, 5, {shim::gid("::ffff:10.0.0.9"), IBV_GID_TYPE_ROCE_V2, 1});
  CHECK(context.process_async_events());
  CHECK(context.state() == context_state::enabled);
  CHECK(context.gid().entry.gid_index == 5);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "a query that fails after an event is reported, every event is acknowledged, and the next call "
    "repeats the query") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  s.set_port_state("sim0", 1, IBV_PORT_DOWN);
  s.raise("sim0", IBV_EVENT_LID_CHANGE, 1);
  s.fail(verb::query_port).with(EIO);
  const auto asked = context.process_async_events();
  REQUIRE_FALSE(asked);
  CHECK(asked.error().call() == verb::query_port);
  CHECK(s.calls(verb::ack_async_event) == 2);
  CHECK(context.process_async_events().value() == 0);
  CHECK(context.state() == context_state::paused);
  const auto queries = s.calls(verb::query_port);
  CHECK(context.process_async_events().value() == 0);
  CHECK(s.calls(verb::query_port) == queries);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("a GID choice that failed is made by the next call") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  CHECK(context.gid().entry.gid_index == 1);
  s.set_gid("sim0", 1, 1, {});
  s.fail(verb::query_gid_table).with(ENOMEM);
  CHECK(context.process_async_events().error().code() == ENOMEM);
  auto moved = std::move(context);
  CHECK(moved.process_async_events().value() == 0);
  CHECK(moved.gid().entry.gid_index == 0);
  CHECK(moved.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "after an exception from the observer every event is acknowledged, and those that were read "
    "are followed") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  const auto throwing = [&] {
    return context.process_async_events([](const ibv_async_event&) { throw 7; });
  };
  s.raise(context.cq(0), IBV_EVENT_CQ_ERR);
  CHECK_THROWS(throwing());
  CHECK(context.state() == context_state::enabled);
  s.set_port_state("sim0", 1, IBV_PORT_DOWN);
  CHECK_THROWS(throwing());
  CHECK(context.state() == context_state::paused);
  s.raise("sim0", IBV_EVENT_DEVICE_FATAL);
  CHECK_THROWS(throwing());
  CHECK(context.state() == context_state::lost);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::events_test
