// Every destroy of reset() and of the destructor, failed in turn.
#include "suite.hpp"
#include "support/teardown.hpp"
#include "support/trace.hpp"

namespace ibvxx::reset_test {

namespace {

const context_config config{.comp_channels = 2, .cqs = 3};

struct target {
  verb call;
  std::uint64_t nth;
  std::size_t left;  // objects that stay: it and what it was made from
};

/// reset() with two regions, in its order: which destroy fails, and how much stays with it.
const target targets[] = {
    {verb::dereg_mr, 1, 1 + 2},  // MR, PD, device
    {verb::dereg_mr, 2, 1 + 2},
    {verb::destroy_cq, 1, 1 + 2},  // notification CQ, its channel, device
    {verb::destroy_cq, 2, 1 + 2},
    {verb::destroy_cq, 3, 1 + 2},
    {verb::destroy_cq, 4, 1 + 2},
    {verb::destroy_comp_channel, 1, 1 + 1},  // channel, device
    {verb::destroy_comp_channel, 2, 1 + 1},
    {verb::dealloc_pd, 1, 1 + 1},
};

std::byte memory[2][64];

rdma_context opened(std::size_t regions) {
  auto context = rdma_context::open(config);
  REQUIRE(context);
  for (std::size_t i = 0; i < regions; ++i)
    REQUIRE(context->register_memory(std::span(memory[i]), IBV_ACCESS_LOCAL_WRITE));
  return std::move(*context);
}

}  // namespace

TEST_CASE(
    "reset() that fails at any destroy keeps that object and its ancestors, and the next one "
    "continues from there") {
  for (const target& t : targets) {
    INFO("failing " << name(t.call) << " " << t.nth);
    shim::session s;
    rdma_context context = opened(2);
    const auto everything = s.live();
    const auto before = s.trace();
    s.fail(t.call).nth(t.nth).with(EBUSY);

    const auto first = context.reset();
    REQUIRE_FALSE(first);
    CHECK(first.error().call() == t.call);
    CHECK(first.error().code() == EBUSY);
    CHECK(first.error().detail().find("left: ") != std::string_view::npos);
    CHECK(s.live() == t.left);
    CHECK(context.owned().total() == t.left);
    CHECK(context.state() == context_state::releasing);
    CHECK_FALSE(context.ready());
    CHECK_FALSE(context.pause());

    const auto second = context.reset();
    CHECK(second);
    CHECK(s.live() == 0);
    CHECK(context.state() == context_state::disabled);

    const auto calls = s.calls();
    CHECK(context.reset());
    CHECK(s.calls() == calls);

    // Every object went exactly once.
    const auto destroyed = test::destroyed(s.trace());
    CHECK(destroyed.size() == everything);
    CHECK(std::set<std::string>(destroyed.begin(), destroyed.end()).size() == everything);
    CHECK(s.finish().empty());
  }
}

TEST_CASE("after a reset() that left something, enable() releases the remains and opens anew") {
  for (const target& t : targets) {
    INFO("failing " << name(t.call) << " " << t.nth);
    shim::session s;
    rdma_context context = opened(2);
    s.fail(t.call).nth(t.nth).with(EBUSY);
    REQUIRE_FALSE(context.reset());
    CHECK(context.enable());
    CHECK(context.state() == context_state::enabled);
    CHECK(s.live() == context.owned().total());
    CHECK(context.reset());
    CHECK(s.finish().empty());
  }
}

TEST_CASE(
    "a failing close of the epoll descriptor is reported, but the descriptor is closed, as on "
    "Linux") {
  shim::session s;
  rdma_context context = opened(0);
  s.fail(verb::close).with(EIO);
  const auto closed = context.reset();
  REQUIRE_FALSE(closed);
  CHECK(closed.error().call() == verb::close);
  CHECK(closed.error().code() == EIO);
  CHECK(s.live() == 0);
  CHECK(context.state() == context_state::disabled);
  CHECK(s.finish().empty());
}

TEST_CASE(
    "the destructor reports each failed destroy to the teardown handler and keeps that object's "
    "parents alive") {
  for (const target& t : targets) {
    INFO("failing " << name(t.call) << " " << t.nth);
    shim::session s;
    const test::teardown_catcher teardown;
    {
      const rdma_context context = opened(2);
      s.fail(t.call).nth(t.nth).with(EIO);
    }
    REQUIRE(teardown.count() == 1);
    CHECK(teardown[0].call() == t.call);
    CHECK(teardown[0].code() == EIO);
    CHECK(s.live() == t.left);
    const auto findings = s.finish();
    CHECK(findings.size() == t.left);
    CHECK(test::count(findings, shim::finding_kind::leak) == t.left);
  }
}

TEST_CASE(
    "while every destroy fails, reset() reports it and keeps everything; it succeeds when the "
    "fault has ended") {
  shim::session s;
  rdma_context context = opened(2);
  for (const verb call : {verb::dereg_mr, verb::destroy_cq}) s.fail(call).persistently().with(EIO);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto outcome = context.reset();
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().call() == verb::dereg_mr);
    CHECK(
        context.owned() ==
        context_inventory{
            .devices = 1, .pds = 1, .channels = 2, .cqs = 3, .notification_cqs = 1, .regions = 2});
  }
  s.clear_rules();
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("reset() destroys in the documented order") {
  shim::session s;
  rdma_context context = opened(2);
  REQUIRE(context.reset());
  CHECK(test::destroyed(s.trace()) ==
        std::vector<std::string>{"MR#2", "MR#1", "CQ#4", "CQ#3", "CQ#2", "CQ#1",
                                 "completion channel#2", "completion channel#1", "descriptor",
                                 "PD#1", "context#1"});
  CHECK(s.finish().empty());
}

TEST_CASE(
    "moving keeps everything; move assignment destroys the target's objects, children first") {
  shim::session s;
  rdma_context a = opened(1);
  rdma_context b = opened(1);
  const auto pd = b.pd();
  const auto before = s.trace().size();
  a = std::move(b);
  CHECK(a.pd() == pd);
  CHECK(a.state() == context_state::enabled);
  CHECK(a.owned().regions == 1);
  auto trace = s.trace();
  trace.erase(trace.begin(), trace.begin() + static_cast<std::ptrdiff_t>(before));
  CHECK(test::destroyed(trace) ==
        std::vector<std::string>{"MR#1", "CQ#4", "CQ#3", "CQ#2", "CQ#1", "completion channel#2",
                                 "completion channel#1", "descriptor", "PD#1", "context#1"});
  rdma_context c = std::move(a);
  CHECK(c.pd() == pd);
  CHECK(c.register_memory(std::span(memory[1]), IBV_ACCESS_LOCAL_WRITE));
  rdma_context& self = c;
  c = std::move(self);
  CHECK(c.pd() == pd);
  CHECK(c.reset());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::reset_test
