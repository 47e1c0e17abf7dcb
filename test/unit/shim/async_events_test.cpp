// Async events of every type, raised by the session.
#include "suite.hpp"
#include "support/every_object.hpp"
#include "support/loopback.hpp"
#include "support/refusal.hpp"
#include "support/trace.hpp"

namespace ibvxx::shim_async_events_test {

namespace {

using test::reason;

struct fixture {
  shim::session s{{{shim::device_description::hardware()}}};
  std::optional<test::every_object> o{std::in_place};

  fixture() { or_throw(set_nonblocking(o->context->async_fd)); }
  /// The one event that is there, acknowledged.
  [[nodiscard]] ibv_async_event read() {
    auto event = or_throw(get_async_event(o->context));
    REQUIRE(event);
    const ibv_async_event copy = event->get();
    event.reset();
    CHECK_FALSE(or_throw(get_async_event(o->context)));
    return copy;
  }
  void end() {
    o.reset();
    const auto findings = s.finish();
    INFO(test::lines(findings));
    CHECK(findings.empty());
  }
};

}  // namespace

TEST_CASE("events of queue pairs name them, and error events break the queue pair") {
  fixture f;
  ibv_qp* const qp = f.o->qp.get();
  ibv_qp_init_attr attributes = f.o->plain_qp(IBV_QPT_RC);
  attributes.srq = f.o->srq.get();
  auto shared = or_throw(create_qp(f.o->pd, attributes));
  for (const ibv_event_type type :
       {IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_PATH_MIG, IBV_EVENT_PATH_MIG_ERR}) {
    f.s.raise(qp, type);
    const auto event = f.read();
    CHECK(event.event_type == type);
    CHECK(event.element.qp == qp);
  }
  CHECK(query_qp(f.o->qp, IBV_QP_STATE)->attr.qp_state == IBV_QPS_RESET);
  for (const ibv_event_type type :
       {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR}) {
    auto own = f.o->plain_qp(IBV_QPT_RC);
    auto broken = or_throw(create_qp(f.o->pd, own));
    f.s.raise(broken.get(), type);
    const auto event = f.read();
    CHECK(event.event_type == type);
    CHECK(event.element.qp == broken.get());
    CHECK(query_qp(broken, IBV_QP_STATE)->attr.qp_state == IBV_QPS_ERR);
  }
  f.s.raise(shared.get(), IBV_EVENT_QP_LAST_WQE_REACHED);
  CHECK(f.read().element.qp == shared.get());
  CHECK(reason([&] { f.s.raise(qp, IBV_EVENT_QP_LAST_WQE_REACHED); }).find("without an SRQ") !=
        std::string::npos);
  CHECK(reason([&] { f.s.raise(qp, IBV_EVENT_CQ_ERR); }).find("is no queue pair's") !=
        std::string::npos);
  CHECK(shared.reset());
  f.end();
}

TEST_CASE("events of shared receive queues, completion queues and work queues") {
  fixture f;
  for (const ibv_event_type type : {IBV_EVENT_SRQ_ERR, IBV_EVENT_SRQ_LIMIT_REACHED}) {
    f.s.raise(f.o->srq.get(), type);
    const auto event = f.read();
    CHECK(event.event_type == type);
    CHECK(event.element.srq == f.o->srq.get());
  }
  f.s.raise(f.o->cq.get(), IBV_EVENT_CQ_ERR);
  CHECK(f.read().element.cq == f.o->cq.get());
  f.s.raise(f.o->wq.get(), IBV_EVENT_WQ_FATAL);
  const auto event = f.read();
  CHECK(event.event_type == IBV_EVENT_WQ_FATAL);
  CHECK(event.element.wq == f.o->wq.get());
  CHECK(reason([&] { f.s.raise(f.o->srq.get(), IBV_EVENT_CQ_ERR); }).find("is no SRQ's") !=
        std::string::npos);
  CHECK(reason([&] { f.s.raise(f.o->cq.get(), IBV_EVENT_SRQ_ERR); }).find("is no CQ's") !=
        std::string::npos);
  CHECK(reason([&] { f.s.raise(f.o->wq.get(), IBV_EVENT_QP_FATAL); }).find("is no work queue's") !=
        std::string::npos);
  CHECK(reason([&] {
          f.s.raise(static_cast<ibv_wq*>(nullptr), IBV_EVENT_WQ_FATAL);
        }).find("no live WQ") != std::string::npos);
  f.end();
}

TEST_CASE("a work queue's event that was read and not acknowledged would block its destroy") {
  shim::session s({{shim::device_description::hardware()}},
                  {.destroy_deadline = std::chrono::milliseconds(1)});
  {
    test::every_object o;
    or_throw(set_nonblocking(o.context->async_fd));
    s.raise(o.wq.get(), IBV_EVENT_WQ_FATAL);
    ibv_async_event event;
    CHECK(::ibv_get_async_event(o.context.get(), &event) == 0);
    CHECK(o.table.reset());
    CHECK(o.wq.reset());
  }
  const auto findings = s.finish();
  INFO(test::lines(findings));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == shim::finding_kind::unacknowledged_events);
}

TEST_CASE("events of ports and of the device itself") {
  fixture f;
  for (const ibv_event_type type :
       {IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR, IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE,
        IBV_EVENT_SM_CHANGE, IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_GID_CHANGE}) {
    f.s.raise("sim0", type, 1);
    const auto event = f.read();
    CHECK(event.event_type == type);
    CHECK(event.element.port_num == 1);
    CHECK(reason([&] { f.s.raise("sim0", type); }).find("name the port") != std::string::npos);
  }
  f.s.raise("sim0", IBV_EVENT_DEVICE_FATAL);
  CHECK(f.read().event_type == IBV_EVENT_DEVICE_FATAL);
  CHECK(query_device(f.o->context));  // nothing but the event
  CHECK(reason([&] { f.s.raise("sim0", IBV_EVENT_DEVICE_FATAL, 1); }).find("is no port's") !=
        std::string::npos);
  f.end();
}

TEST_CASE(
    "an unread event of a queue pair is dropped with it, and one that was read blocks its "
    "destroy") {
  shim::session s({}, {.destroy_deadline = std::chrono::milliseconds(1)});
  {
    test::loopback pair;
    or_throw(set_nonblocking(pair.context->async_fd));
    s.raise(pair.a.get(), IBV_EVENT_COMM_EST);
    CHECK(pair.a.reset());
    CHECK_FALSE(or_throw(get_async_event(pair.context)));
    s.raise(pair.b.get(), IBV_EVENT_COMM_EST);
    ibv_async_event event;
    CHECK(::ibv_get_async_event(pair.context.get(), &event) == 0);
    CHECK(pair.b.reset());
  }
  const auto findings = s.finish();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].text.find("QP#2 of sim0") == 0);
}

}  // namespace ibvxx::shim_async_events_test
