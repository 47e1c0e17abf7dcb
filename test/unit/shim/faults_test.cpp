// Rules of all kinds, beyond the plain errno: how a failure looks, where in a list it strikes, and
// whether the call has taken effect.
#include <infiniband/verbs.h>

#include "suite.hpp"
#include "support/every_object.hpp"
#include "support/loopback.hpp"
#include "support/owner_recipes.hpp"
#include "support/refusal.hpp"
#include "support/teardown.hpp"
#include "support/trace.hpp"

namespace ibvxx::shim_faults_test {

namespace {

using test::reason;

using shim::finding_kind;

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void check_clean(shim::session& s) {
  const auto findings = s.finish();
  INFO(test::lines(findings));
  CHECK(findings.empty());
}

}  // namespace

TEST_CASE("rules about a failure that the verb cannot have are refused with the reason") {
  shim::session s;
  CHECK(contains(reason([&] { return s.fail(verb::create_cq).negated(); }),
                 "does not return the error number"));
  CHECK(contains(reason([&] { return s.fail(verb::query_gid).negated(); }),
                 "does not return the error number"));
  CHECK(contains(reason([&] {
                   s.fail(verb::dealloc_pd).without_errno();
                   return 0;
                 }),
                 "returns no pointer"));
  CHECK(contains(reason([&] { return s.fail(verb::post_send).at_request(0); }), "count from 1"));
  CHECK(contains(reason([&] { return s.fail(verb::dealloc_pd).at_request(1); }),
                 "takes no list of requests"));
  for (const verb v : {verb::create_qp, verb::query_qp, verb::post_send, verb::close_device})
    CHECK(contains(reason([&] { return s.fail(v).after_effect(); }), "has no effect"));
  CHECK(contains(reason([&] {
                   s.fail(verb::modify_qp).negated().run([] {});
                   return 0;
                 }),
                 "about a failure"));
  CHECK(contains(reason([&] {
                   s.at(verb::create_cq).unplug("sim9");
                   return 0;
                 }),
                 "no simulated device 'sim9'"));
  CHECK(contains(reason([&] { return s.at_call(5000).nth(2); }), "about one call"));
  CHECK(contains(reason([&] { return s.at_call(5000).persistently(); }), "happens once"));
  CHECK(contains(reason([&] {
                   s.at_call(5000).with(EIO);
                   return 0;
                 }),
                 "depends on its verb"));
  CHECK(get_device_list());
  CHECK(contains(reason([&] { return s.at_call(1); }), "call 1 was made already: "));
  check_clean(s);
}

TEST_CASE("a negated failure is returned negative, and is positive in the trace") {
  shim::session s;
  auto context = or_throw(open_device((*get_device_list())[0]));
  ibv_pd* pd = ::ibv_alloc_pd(context.get());
  s.fail(verb::dealloc_pd).negated().with(EBUSY);
  CHECK(::ibv_dealloc_pd(pd) == -EBUSY);
  CHECK(s.trace().back().injected == EBUSY);
  s.fail(verb::alloc_pd).without_errno();
  errno = EINTR;
  CHECK(::ibv_alloc_pd(context.get()) == nullptr);
  CHECK(errno == 0);
  CHECK(s.trace().back().injected == -1);
  CHECK(::ibv_dealloc_pd(pd) == 0);
  CHECK(context.reset());
  check_clean(s);
}

TEST_CASE("one request of a list is refused: those before it are accepted, bad_wr points at it") {
  shim::session s;
  {
    test::loopback pair;
    ibv_recv_wr receives[4] = {};
    for (std::uint64_t i = 0; i < 4; ++i)
      receives[i] = {i, i < 3 ? &receives[i + 1] : nullptr, nullptr, 0};
    ibv_recv_wr* bad_receive = nullptr;
    s.fail(verb::post_recv).at_request(4).with(ENOMEM);
    CHECK(::ibv_post_recv(pair.b.get(), receives, &bad_receive) == ENOMEM);
    CHECK(bad_receive == &receives[3]);

    ibv_send_wr sends[3] = {};
    for (std::uint64_t i = 0; i < 3; ++i) {
      sends[i].wr_id = i;
      sends[i].next = i < 2 ? &sends[i + 1] : nullptr;
      sends[i].opcode = IBV_WR_SEND;
      sends[i].send_flags = IBV_SEND_SIGNALED;
    }
    ibv_send_wr* bad_send = nullptr;
    s.fail(verb::post_send).at_request(3).negated().with(EINVAL);
    CHECK(::ibv_post_send(pair.a.get(), sends, &bad_send) == -EINVAL);
    CHECK(bad_send == &sends[2]);
    ibv_wc done[8];
    CHECK(poll_cq(pair.send_cq, done).value() == 2);
    CHECK(poll_cq(pair.receive_cq, done).value() == 2);
    // The third receive is still there.
    CHECK(::ibv_post_send(pair.a.get(), &sends[2], &bad_send) == 0);
    CHECK(poll_cq(pair.receive_cq, done).value() == 1);
  }
  check_clean(s);
}

TEST_CASE(
    "a list that is too short for the request of a rule is posted, and the rule is a finding") {
  shim::session s;
  {
    test::loopback pair;
    ibv_recv_wr receive{};
    s.fail(verb::post_recv).at_request(2).with(ENOMEM);
    CHECK(post_recv(pair.b, &receive));
  }
  const auto findings = s.finish();
  INFO(test::lines(findings));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == finding_kind::unfired_rule);
  CHECK(contains(findings[0].text,
                 "ibv_post_recv, matching call 1, request 2 -> ENOMEM, once never fired"));
}

TEST_CASE("shared receive queues, work queues and tag lists refuse one request, too") {
  shim::session s({{shim::device_description::hardware()}});
  {
    test::every_object o;
    ibv_recv_wr second{};
    ibv_recv_wr first{1, &second, nullptr, 0};
    ibv_recv_wr* bad = nullptr;
    s.fail(verb::post_srq_recv).at_request(2).with(EIO);
    CHECK(::ibv_post_srq_recv(o.srq.get(), &first, &bad) == EIO);
    CHECK(bad == &second);
    s.fail(verb::post_wq_recv).at_request(1).with(EIO);
    CHECK(::ibv_post_wq_recv(o.wq.get(), &first, &bad) == EIO);
    CHECK(bad == &first);
  }
  check_clean(s);
}

TEST_CASE("a change that reports a failure after its effect has taken effect") {
  shim::session s;
  {
    test::loopback pair;
    s.fail(verb::modify_qp).after_effect().with(EIO);
    ibv_qp_attr wanted{};
    wanted.qp_state = IBV_QPS_ERR;
    CHECK(::ibv_modify_qp(pair.a.get(), &wanted, IBV_QP_STATE) == EIO);
    CHECK(query_qp(pair.a, IBV_QP_STATE)->attr.qp_state == IBV_QPS_ERR);
    s.fail(verb::resize_cq).after_effect().negated().with(ENOMEM);
    CHECK(::ibv_resize_cq(pair.send_cq.get(), 100) == -ENOMEM);
    CHECK(pair.send_cq->cqe == 127);
  }
  check_clean(s);
}

TEST_CASE(
    "a destroy that reports a failure after its effect: the object is gone, its parent can be "
    "destroyed, and a second destroy is ENOENT") {
  shim::session s({{shim::device_description::hardware()}});
  test::every_object o;
  ibv_srq* srq = o.srq.release();
  s.fail(verb::destroy_srq).after_effect().with(EIO);
  CHECK(::ibv_destroy_srq(srq) == EIO);
  CHECK(s.live(shim::object_kind::srq) == 0);
  for (int i = 0; i < 2; ++i) CHECK(::ibv_destroy_srq(srq) == ENOENT);
  CHECK(s.findings().empty());
  // Using it is still a mistake.
  ibv_srq_attr answer;
  CHECK(::ibv_query_srq(srq, &answer) == EINVAL);
  CHECK(test::count(s.findings(), finding_kind::use_after_destroy) == 1);
  // Each of the others is destroyed, and its parents can be destroyed after it.
  for (const auto& one : test::every_call()) {
    switch (one.call) {
      case verb::destroy_srq:
      case verb::dealloc_pd:
      case verb::destroy_comp_channel:
      case verb::destroy_cq:
      case verb::destroy_wq:
      case verb::destroy_qp:
        continue;  // in use here, or destroyed
      default:
        break;
    }
    const bool destroys = one.call >= verb::none &&
                          (std::string(name(one.call)).find("destroy") != std::string::npos ||
                           std::string(name(one.call)).find("dealloc") != std::string::npos ||
                           one.call == verb::dereg_mr || one.call == verb::free_dm ||
                           one.call == verb::close_xrcd || one.call == verb::detach_mcast);
    if (!destroys) continue;
    INFO(name(one.call));
    const auto before = s.live();
    s.fail(one.call).after_effect().with(EIO);
    const auto told = one.make(o);
    REQUIRE(told);
    CHECK(told->code() == EIO);
    CHECK(s.live() == before - 1);
  }
  // The user-space halves, which no call can free any more.
  static_cast<void>(o.td.release());
  static_cast<void>(o.xrcd.release());
  static_cast<void>(o.mr.release());
  static_cast<void>(o.mw.release());
  static_cast<void>(o.dm.release());
  static_cast<void>(o.ah.release());
  static_cast<void>(o.table.release());
  static_cast<void>(o.flow.release());
  static_cast<void>(o.action.release());
  static_cast<void>(o.counters.release());
  static_cast<void>(o.member.release());
  for (auto* owner : {&o.qp, &o.built}) CHECK(owner->reset());
  CHECK(o.wq.reset());
  CHECK(o.cq.reset());
  CHECK(o.polled.reset());
  CHECK(o.channel.reset());
  CHECK(o.pd.reset());
  CHECK(o.context.reset());
  o.list = device_list();
  CHECK(s.finish().size() == 1);
}

TEST_CASE(
    "a device is unplugged at the Nth call of a verb: that call fails with EIO, and all later "
    "ones") {
  shim::session s;
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    s.at(verb::alloc_pd).nth(2).unplug("sim0");
    auto first = alloc_pd(context);
    CHECK(first);
    CHECK(alloc_pd(context).error().code() == EIO);
    CHECK(s.trace().back().injected == EIO);
    CHECK(query_device(context).error().code() == EIO);
    CHECK((*get_async_event(context))->get().event_type == IBV_EVENT_DEVICE_FATAL);
    static_cast<void>(first->release());  // closing the device takes it along
    CHECK(get_device_list()->size() == 0);
  }
  check_clean(s);
}

TEST_CASE("a device is unplugged at any call of the session, of any verb: nothing is left") {
  // What is open when the device is unplugged is closed with it.
  const auto body = []() -> result<void> {
    auto list = get_device_list();
    if (list->size() == 0) return failure(error(verb::open_device, ENODEV));
    auto context = open_device((*list)[0]);
    if (!context) return failure(context.error());
    unique_pd pd;
    unique_cq cq;
    const auto step = [&]() -> result<void> {
      if (auto made = test::assign(pd, alloc_pd(*context)); !made) return made;
      if (auto made = test::assign(cq, create_cq(*context, 4)); !made) return made;
      if (auto gone = cq.reset(); !gone) return gone;
      return pd.reset();
    };
    auto outcome = step();
    static_cast<void>(cq.release());
    static_cast<void>(pd.release());
    return outcome;
  };
  std::uint64_t calls = 0;
  {
    shim::session s;
    CHECK(body());
    calls = s.calls();
    check_clean(s);
  }
  CHECK(calls == 8);
  for (std::uint64_t at = 1; at <= calls; ++at) {
    INFO("at call " << at);
    shim::session s;
    s.at_call(at).unplug("sim0");
    const auto outcome = body();
    // The list does not change, and closing never fails; the calls in between need the device.
    if (outcome) CHECK(at >= 7);
    if (!outcome) CHECK(outcome.error().code() == (at <= 2 ? ENODEV : EIO));
    check_clean(s);
  }
}

TEST_CASE("reads of events fail with EAGAIN and EINTR where a rule says so") {
  shim::session s;
  {
    test::loopback pair;
    CHECK(set_nonblocking(pair.context->async_fd));
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    ibv_async_event event;
    s.raise_spurious_event(pair.send_cq.get());
    s.raise(pair.a.get(), IBV_EVENT_COMM_EST);
    for (const int code : {EAGAIN, EINTR}) {
      s.fail(verb::get_cq_event).with(code);
      s.fail(verb::get_async_event).with(code);
      errno = 0;
      CHECK(::ibv_get_cq_event(pair.channel.get(), &cq, &cq_context) == -1);
      CHECK(errno == code);
      errno = 0;
      CHECK(::ibv_get_async_event(pair.context.get(), &event) == -1);
      CHECK(errno == code);
    }
    // The events themselves were not lost, and the toolkit reads on over the interruption.
    s.fail(verb::get_cq_event).with(EINTR);
    CHECK(*get_cq_event(pair.channel));
    s.fail(verb::get_async_event).with(EINTR);
    CHECK((*get_async_event(pair.context))->get().event_type == IBV_EVENT_COMM_EST);
    s.fail(verb::get_async_event).with(EAGAIN);
    CHECK_FALSE(get_async_event(pair.context)->has_value());
  }
  check_clean(s);
}

TEST_CASE(
    "calls of the data path are counted, and can be failed, but are neither traced nor swept") {
  const auto posting = []() -> result<void> {
    auto context = test::open_only_device();
    if (!context) return failure(context.error());
    auto pd = alloc_pd(*context);
    if (!pd) return failure(pd.error());
    ibv_srq_init_attr wanted{nullptr, {4, 1, 0}};
    auto srq = create_srq(*pd, wanted);
    if (!srq) return failure(srq.error());
    ibv_recv_wr receive{};
    if (auto posted = post_srq_recv(*srq, &receive); !posted) return posted;
    return srq->reset();
  };
  {
    shim::session s;
    CHECK(posting());
    CHECK(s.calls(verb::post_srq_recv) == 1);
    const auto trace = s.trace();
    CHECK(trace.size() + 1 == s.calls());
    CHECK(std::none_of(trace.begin(), trace.end(), [](const shim::call_record& one) {
      return one.call == verb::post_srq_recv;
    }));
    s.fail(verb::post_srq_recv).with(ENOMEM);
    CHECK(posting().error().call() == verb::post_srq_recv);
    check_clean(s);
  }
  const test::teardown_catcher teardown;
  const auto report = shim::sweep(posting, {.persistent = false});
  CHECK(std::count(report.calls.begin(), report.calls.end(), verb::create_srq) == 1);
  CHECK(std::count(report.calls.begin(), report.calls.end(), verb::post_srq_recv) == 0);
}

}  // namespace ibvxx::shim_faults_test
