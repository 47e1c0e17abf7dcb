// Sessions that forward, in front of the real libibverbs and the kernel's own Soft-RoCE device.
// Runs as root inside the virtual machine that boot.sh starts.
#include "kernel/nothing_left.hpp"
#include "suite.hpp"
#include "support/loopback.hpp"
#include "support/trace.hpp"

using namespace ibvxx;
using shim::finding_kind;
using shim::object_kind;
using test::nothing_left;

TEST_CASE(
    "kernel: a forwarding session records the real library's objects, and calls succeed as without "
    "it") {
  const nothing_left check;
  shim::session s{shim::forwarding{}};
  {
    test::loopback pair;
    CHECK(s.live(object_kind::context) == 1);
    CHECK(s.live(object_kind::cq) == 2);
    CHECK(s.live(object_kind::mr) == 1);
    CHECK(s.live(object_kind::qp) == 2);
    or_throw(req_notify_cq(pair.receive_cq));
    pair.send(42);
    ibv_cq* const named = pair.next_event();
    CHECK(named == pair.receive_cq.get());
    ibv_ack_cq_events(named, 1);
    ibv_wc done[2];
    CHECK(or_throw(poll_cq(pair.receive_cq, std::span(done))) == 1);
    CHECK(done[0].status == IBV_WC_SUCCESS);
    CHECK(done[0].wr_id == 42);
    // Through the operations of the context, which were the provider's.
    CHECK(s.calls(verb::post_send) == 1);
    CHECK(s.calls(verb::post_recv) == 1);
    CHECK(s.calls(verb::req_notify_cq) == 1);
    CHECK(s.calls(verb::poll_cq) == 1);
  }
  CHECK(s.live() == 0);
  INFO(test::lines(s.findings()));
  CHECK(s.finish().empty());
}

TEST_CASE(
    "kernel: every call of a context fails once in front of Soft-RoCE, and no object is left in "
    "the kernel") {
  const nothing_left check;
  const auto report = shim::sweep(
      []() -> result<void> {
        rdma_context context({.device_name = "rxe0", .comp_channels = 2, .cqs = 2});
        if (auto enabled = context.enable(); !enabled) return enabled;
        std::byte memory[64] = {};
        auto region = context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
        if (!region) return failure(region.error());
        if (auto gone = context.unregister_memory(*region); !gone) return gone;
        return context.reset();
      },
      {.forwarding = true});
  INFO(report.text());
  CHECK(report.clean());
  CHECK(report.runs > 100);
}

TEST_CASE("kernel: a destroy that would block for ever in libibverbs is a finding and returns") {
  const nothing_left check;
  shim::session s(shim::forwarding{}, {.destroy_deadline = std::chrono::milliseconds(1)});
  {
    test::loopback pair;
    or_throw(req_notify_cq(pair.receive_cq));
    pair.send(1);
    static_cast<void>(pair.next_event());
  }
  CHECK(s.live() == 0);
  const auto findings = s.finish();
  INFO(test::lines(findings));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == finding_kind::unacknowledged_events);
}

TEST_CASE("kernel: an acknowledgement too many is a finding, and the destroy does not hang") {
  const nothing_left check;
  shim::session s(shim::forwarding{}, {.destroy_deadline = std::chrono::milliseconds(1)});
  {
    test::loopback pair;
    or_throw(req_notify_cq(pair.receive_cq));
    pair.send(1);
    ibv_ack_cq_events(pair.next_event(), 2);
  }
  CHECK(s.live() == 0);
  const auto findings = s.finish();
  INFO(test::lines(findings));
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].kind == finding_kind::over_acknowledged_events);
}

TEST_CASE("kernel: destroying a protection domain in use is a finding, and EBUSY from the kernel") {
  const nothing_left check;
  shim::session s{shim::forwarding{}};
  {
    test::loopback pair;
    s.expect(finding_kind::destroyed_in_use, "while it is used by MR#1 of ");
    CHECK(ibv_dealloc_pd(pair.pd.get()) == EBUSY);
    CHECK(s.live(object_kind::pd) == 1);
  }
  INFO(test::lines(s.findings()));
  CHECK(s.finish().empty());
}

TEST_CASE("kernel: a destroyed handle does not reach the real library a second time") {
  const nothing_left check;
  shim::session s{shim::forwarding{}};
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    ibv_pd* const pd = or_throw(alloc_pd(context)).release();
    CHECK(ibv_dealloc_pd(pd) == 0);
    CHECK(ibv_dealloc_pd(pd) == EINVAL);
  }
  const auto findings = s.finish();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == finding_kind::double_destroy);
}
