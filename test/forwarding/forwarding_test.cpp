// Sessions that forward: rules and ledger in front of a library that is not the shim's.
#include <cstring>

#include "forwarding/real_library.hpp"
#include "suite.hpp"
#include "support/every_object.hpp"
#include "support/loopback.hpp"
#include "support/trace.hpp"

namespace ibvxx::forwarding_test {
namespace {

using shim::finding_kind;
using shim::object_kind;
using test::really_clean;

TEST_CASE("forwarding: a context of the real device is in the ledger, object by object") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  rdma_context context({.comp_channels = 2, .cqs = 4});
  REQUIRE(context.enable());
  CHECK(std::string(::ibv_get_device_name(context.device()->device)) == "real0");
  CHECK(s.live(object_kind::context) == 1);
  CHECK(s.live(object_kind::pd) == 1);
  CHECK(s.live(object_kind::comp_channel) == 2);
  CHECK(s.live(object_kind::cq) == 5);
  CHECK(s.calls(verb::create_cq) == 5);
  CHECK(s.calls(verb::query_port) != 0);  // through the context's operations
  CHECK(test::really_live() == s.live() - s.live(object_kind::descriptor));
  REQUIRE(context.reset());
  CHECK(s.live() == 0);
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE("forwarding: every kind of object is in the ledger from its creation to its destroy") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  {
    const test::every_object all;
    for (std::size_t kind = 0; kind < shim::object_kind_count; ++kind) {
      const auto one = static_cast<object_kind>(kind);
      if (one == object_kind::descriptor) continue;  // it has made none of its own
      INFO(shim::name(one));
      CHECK(s.live(one) != 0);
    }
  }
  CHECK(s.live() == 0);
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE(
    "forwarding: an object that was never destroyed is a leak, reported with the call that made "
    "it") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  auto context = or_throw(open_device((*get_device_list())[0]));
  ibv_pd* const leaked = or_throw(alloc_pd(context)).release();
  const auto findings = s.finish();
  CHECK(test::count(findings, finding_kind::leak) == 2);
  CHECK(test::lines(findings).find("PD#1 of real0, made by ibv_alloc_pd (call ") !=
        std::string::npos);
  CHECK(ibv_dealloc_pd(leaked) == 0);
}

TEST_CASE("forwarding: a rule fails any verb before the real one is called") {
  const really_clean check;
  for (const test::verb_call& one : test::every_call()) {
    INFO(name(one.call));
    shim::session s{shim::forwarding{}};
    {
      test::every_object all;
      s.fail(one.call).with(EXDEV);
      const std::size_t before = test::really_live();
      const std::uint64_t calls = s.calls(one.call);
      const auto told = one.make(all);
      CHECK(s.calls(one.call) > calls);
      REQUIRE(told);
      CHECK(told->call() == one.call);
      // ibv_poll_cq sets no errno.
      CHECK(told->code() == (one.call == verb::poll_cq ? EIO : EXDEV));
      CHECK(test::really_live() == before);
    }
    // Destroys what the rule kept alive.
    s.clear_rules();
    const auto left = s.finish();
    for (const shim::finding& leak : left) CHECK(leak.kind == finding_kind::leak);
  }
}

TEST_CASE("forwarding: a failed destroy keeps the real object, and the next one ends it") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  auto context = or_throw(open_device((*get_device_list())[0]));
  auto pd = or_throw(alloc_pd(context));
  s.fail(verb::dealloc_pd).with(EBUSY);
  const auto refused = pd.reset();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == EBUSY);
  CHECK(s.live(object_kind::pd) == 1);
  CHECK(pd.reset());
  CHECK(s.live(object_kind::pd) == 0);
  REQUIRE(context.reset());
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE(
    "forwarding: a destroy that fails after its effect destroyed the object, and is not repeated "
    "on the real one") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  auto context = or_throw(open_device((*get_device_list())[0]));
  ibv_pd* const pd = or_throw(alloc_pd(context)).release();
  const std::size_t before = test::really_live();
  s.fail(verb::dealloc_pd).after_effect().with(EIO);
  CHECK(ibv_dealloc_pd(pd) == EIO);
  CHECK(test::really_live() == before - 1);
  CHECK(ibv_dealloc_pd(pd) == ENOENT);
  REQUIRE(context.reset());
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE("forwarding: a destroyed handle does not reach the real library") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  auto context = or_throw(open_device((*get_device_list())[0]));
  auto cq = or_throw(create_cq(context, 16));
  ibv_cq* const gone = cq.get();
  REQUIRE(cq.reset());
  const std::size_t calls = test::really_called();
  CHECK(ibv_destroy_cq(gone) == EINVAL);
  CHECK(ibv_resize_cq(gone, 32) == EINVAL);
  CHECK(ibv_destroy_cq(nullptr) == EINVAL);
  CHECK(test::really_called() == calls);
  REQUIRE(context.reset());
  const auto findings = s.finish();
  CHECK(findings.size() == 3);
  CHECK(test::count(findings, finding_kind::double_destroy) == 1);
  CHECK(test::count(findings, finding_kind::use_after_destroy) == 1);
  CHECK(test::count(findings, finding_kind::foreign_pointer) == 1);
}

TEST_CASE(
    "forwarding: calls on objects made before the session reach the real library without checks") {
  const really_clean check;
  auto context = or_throw(open_device((*get_device_list())[0]));
  auto pd = or_throw(alloc_pd(context));
  {
    shim::session s{shim::forwarding{}};
    CHECK(pd.reset());
    auto again = or_throw(alloc_pd(context));
    CHECK(s.live() == 1);
    CHECK(again.reset());
    CHECK(test::lines(s.finish()).empty());
  }
  REQUIRE(context.reset());
}

TEST_CASE("forwarding: an object of a simulated session does not reach the real library") {
  const really_clean check;
  ibv_pd* simulated = nullptr;
  {
    shim::session s;
    s.tolerate(finding_kind::leak);
    simulated =
        or_throw(alloc_pd(or_throw(open_device((*get_device_list())[0])).release())).release();
    static_cast<void>(s.finish());
  }
  shim::session s{shim::forwarding{}};
  const std::size_t calls = test::really_called();
  CHECK(ibv_dealloc_pd(simulated) == EINVAL);
  CHECK(test::really_called() == calls);
  const auto findings = s.finish();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == finding_kind::foreign_pointer);
}

TEST_CASE(
    "forwarding: a context opened in a session can be used after it, by the real operations") {
  const really_clean check;
  std::optional<test::loopback> pair;
  {
    shim::session s{shim::forwarding{}};
    pair.emplace();
    s.tolerate(finding_kind::leak);  // it stays alive
    CHECK(test::lines(s.finish()).empty());
  }
  pair->send(7);
  ibv_wc completion{};
  CHECK(or_throw(poll_cq(pair->send_cq, std::span(&completion, 1))) == 1);
  CHECK(completion.wr_id == 7);
  pair.reset();
}

TEST_CASE("forwarding: a device list that a rule fails sets the number of devices to 0") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  s.fail(verb::get_device_list).with(ENOMEM);
  int count = 7;
  CHECK(::ibv_get_device_list(&count) == nullptr);
  CHECK(errno == ENOMEM);
  CHECK(count == 0);
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE("forwarding: an open device may be opened again after its list was freed") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  auto first = or_throw(open_device((*get_device_list())[0]));
  auto second = or_throw(open_device(first->device));
  CHECK(second.reset());
  CHECK(first.reset());
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE("forwarding: opening a device after its list was freed is a finding") {
  shim::session s{shim::forwarding{}};
  ibv_device** list = ibv_get_device_list(nullptr);
  ibv_device* const device = list[0];
  ibv_free_device_list(list);
  s.expect(finding_kind::use_after_destroy, "after the device list was freed");
  // The simulation behind has devices that outlive their list, and says the same.
  const std::size_t found = test::really_found();
  REQUIRE(unique_context(ibv_open_device(device)).reset());
  CHECK(test::really_found() == found + 1);
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE(
    "forwarding: destroying an object in use is a finding, and returns the real library's answer") {
  shim::session s{shim::forwarding{}};
  auto context = or_throw(open_device((*get_device_list())[0]));
  auto channel = or_throw(create_comp_channel(context));
  auto cq = or_throw(create_cq(context, 16, channel.get()));
  s.expect(finding_kind::destroyed_in_use, "while it is used by CQ#1 of real0");
  const std::size_t found = test::really_found();
  CHECK(ibv_destroy_comp_channel(channel.get()) == EBUSY);
  CHECK(test::really_found() == found + 1);  // the call got there
  REQUIRE(cq.reset());
  REQUIRE(channel.reset());
  REQUIRE(context.reset());
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE(
    "forwarding: extended queues are intercepted through their own operations, also after the "
    "session") {
  const really_clean check;
  std::optional<test::every_object> objects;
  const auto use = [&objects] {
    CHECK(or_throw(start_poll(objects->polled)) == false);  // nothing there
    ibv_qp_ex* const batch = qp_to_qp_ex(objects->built);
    wr_start(batch);
    wr_abort(batch);
    std::uint32_t word = 7;
    or_throw(memcpy_to_dm(objects->dm, 0, std::as_bytes(std::span(&word, 1))));
    std::uint32_t copy = 0;
    or_throw(memcpy_from_dm(std::as_writable_bytes(std::span(&copy, 1)), objects->dm, 0));
    CHECK(copy == 7);
  };
  {
    shim::session s{shim::forwarding{}};
    objects.emplace();
    use();
    CHECK(s.calls(verb::start_poll) == 1);
    CHECK(s.calls(verb::wr_start) == 1);
    CHECK(s.calls(verb::wr_abort) == 1);
    CHECK(s.calls(verb::memcpy_to_dm) == 1);
    CHECK(s.calls(verb::memcpy_from_dm) == 1);
    s.tolerate(finding_kind::leak);  // they stay alive
    CHECK(test::lines(s.finish()).empty());
  }
  use();
  objects.reset();
}

TEST_CASE(
    "forwarding: a queue pair cannot be destroyed while it is a member of a multicast group") {
  const std::size_t live = test::really_live();
  shim::session s{shim::forwarding{}};
  {
    test::every_object all;
    s.expect(finding_kind::destroyed_in_use, "multicast membership#1 of real0");
    CHECK(ibv_destroy_qp(all.qp.get()) == EBUSY);
    s.fail(verb::detach_mcast).with(EIO);
    CHECK_FALSE(all.member.reset());
    CHECK(s.live(object_kind::multicast_membership) == 1);
  }
  CHECK(s.live() == 0);
  CHECK(test::really_live() == live);
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE("forwarding: a region that was moved to another protection domain keeps that one alive") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    auto first = or_throw(alloc_pd(context));
    auto second = or_throw(alloc_pd(context));
    alignas(64) std::byte memory[64];
    auto mr = or_throw(reg_mr(first, std::span(memory), IBV_ACCESS_LOCAL_WRITE));
    REQUIRE(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, second.get(), nullptr, 0, 0) == 0);
    CHECK(first.reset());
    CHECK(s.findings().empty());
    REQUIRE(mr.reset());
    CHECK(second.reset());
  }
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE(
    "forwarding: the k-th request of a list is refused, and those before it are carried out") {
  const really_clean check;
  shim::session s{shim::forwarding{}};
  {
    test::loopback pair;
    ibv_sge piece{reinterpret_cast<std::uint64_t>(pair.memory), 16, pair.region->lkey};
    ibv_recv_wr receives[3]{};
    ibv_send_wr sends[3]{};
    for (std::uint64_t i = 0; i < 3; ++i) {
      receives[i] = {i, i < 2 ? &receives[i + 1] : nullptr, &piece, 1};
      sends[i].wr_id = i;
      sends[i].next = i < 2 ? &sends[i + 1] : nullptr;
      sends[i].sg_list = &piece;
      sends[i].num_sge = 1;
      sends[i].opcode = IBV_WR_SEND;
      sends[i].send_flags = IBV_SEND_SIGNALED;
    }
    ibv_recv_wr* bad_receive = nullptr;
    ibv_send_wr* bad_send = nullptr;
    s.fail(verb::post_recv).at_request(3).with(ENOMEM);
    CHECK(ibv_post_recv(pair.b.get(), receives, &bad_receive) == ENOMEM);
    CHECK(bad_receive == &receives[2]);
    CHECK(receives[1].next == &receives[2]);
    s.fail(verb::post_send).at_request(2).with(ENOMEM);
    CHECK(ibv_post_send(pair.a.get(), sends, &bad_send) == ENOMEM);
    CHECK(bad_send == &sends[1]);
    s.fail(verb::post_send).at_request(1).with(EINVAL);
    CHECK(ibv_post_send(pair.a.get(), sends, &bad_send) == EINVAL);
    CHECK(bad_send == &sends[0]);
    s.fail(verb::post_send).with(EIO);
    bad_send = nullptr;
    CHECK(ibv_post_send(pair.a.get(), sends, &bad_send) == EIO);
    CHECK(bad_send == &sends[0]);
    ibv_wc done[4];
    CHECK(or_throw(poll_cq(pair.send_cq, std::span(done))) == 1);
    CHECK(or_throw(poll_cq(pair.receive_cq, std::span(done))) == 1);
    CHECK(s.calls(verb::post_send) == 3);
    CHECK(s.calls(verb::poll_cq) == 2);
  }
  CHECK(test::lines(s.finish()).empty());
}

TEST_CASE(
    "forwarding: a sweep fails every call in front of the real library, and leaves no object in "
    "it") {
  const really_clean check;
  const auto report = shim::sweep(
      []() -> result<void> {
        rdma_context context({.comp_channels = 1, .cqs = 2});
        if (auto enabled = context.enable(); !enabled) return enabled;
        std::byte memory[64] = {};
        auto region = context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
        if (!region) return failure(region.error());
        if (auto gone = context.unregister_memory(*region); !gone) return gone;
        return context.reset();
      },
      {.order = 2, .forwarding = true});
  INFO(report.text());
  CHECK(report.clean());
  CHECK(report.runs > 200);
}

TEST_CASE("forwarding: a sweep reports what the body leaves behind, and destroys it") {
  const really_clean check;
  const auto report = shim::sweep(
      []() -> result<void> {
        auto list = get_device_list();
        if (!list) return failure(list.error());
        auto context = open_device((*list)[0]);
        if (!context) return failure(context.error());
        ibv_context* const kept = context->release();
        auto pd = alloc_pd(kept);
        if (!pd) return failure(pd.error());  // and the context is leaked
        if (auto gone = pd->reset(); !gone) return gone;
        return unique_context(kept).reset();
      },
      {.forwarding = true});
  CHECK_FALSE(report.clean());
  CHECK(report.text().find("left alive: context#1 of real0") != std::string::npos);
}

TEST_CASE("forwarding: what only a simulated device can do is refused, with the reason") {
  shim::session s{shim::forwarding{}};
  {
    test::loopback pair;
    CHECK_THROWS_AS(s.unplug("real0"), std::logic_error);
    CHECK_THROWS_AS(s.set_port_state("real0", 1, IBV_PORT_DOWN), std::logic_error);
    CHECK_THROWS_AS(s.set_gid("real0", 1, 1, {}), std::logic_error);
    CHECK_THROWS_AS(s.raise("real0", IBV_EVENT_DEVICE_FATAL), std::logic_error);
    CHECK_THROWS_AS(s.raise(pair.a.get(), IBV_EVENT_QP_FATAL), std::logic_error);
    CHECK_THROWS_AS(s.raise_spurious_event(pair.send_cq.get()), std::logic_error);
    CHECK_THROWS_AS(s.complete(pair.a.get()), std::logic_error);
    CHECK_THROWS_AS(s.complete_receive(pair.a.get()), std::logic_error);
    CHECK_THROWS_AS(s.hold_completions(pair.send_cq.get()), std::logic_error);
    CHECK_THROWS_AS(s.completion_vector(pair.send_cq.get()), std::logic_error);
    CHECK_THROWS_AS(s.fail(verb::query_port).unplug("real0"), std::logic_error);
  }
  CHECK(test::lines(s.finish()).empty());
}

}  // namespace
}  // namespace ibvxx::forwarding_test
