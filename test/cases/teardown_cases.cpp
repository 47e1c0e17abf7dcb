// Cases from the field: teardown. The numbers are those of docs/cases.md.
#include "suite.hpp"
#include "support/teardown.hpp"
#include "support/trace.hpp"

namespace ibvxx::teardown_cases {

namespace {

ibv_qp_init_attr attributes_on(const rdma_context& context) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = context.cq(0);
  attributes.cap = {4, 4, 1, 1, 0};
  attributes.qp_type = IBV_QPT_RC;
  return attributes;
}

ibv_qp* new_qp(rdma_context& context) {
  auto attributes = attributes_on(context);
  return or_throw(context.create_qp(attributes));
}

std::byte memory[3][64];

}  // namespace

TEST_CASE("case 11: regions, queue pairs and the rest are destroyed in the documented order") {
  shim::session s;
  auto context = or_throw(rdma_context::open({.comp_channels = 1, .cqs = 1}));
  for (auto& region : memory)
    REQUIRE(context.register_memory(std::span(region), IBV_ACCESS_LOCAL_WRITE));
  REQUIRE(qp_to_init(new_qp(context)));
  new_qp(context);
  CHECK(context.owned().qps == 2);
  REQUIRE(context.reset());
  std::vector<std::string> order;
  for (const auto& one : s.trace())
    if (one.call == verb::destroy_qp || one.call == verb::dereg_mr ||
        one.call == verb::destroy_cq || one.call == verb::dealloc_pd ||
        one.call == verb::close_device)
      order.push_back(test::short_title(one.subject));
  CHECK(order == std::vector<std::string>{"QP#2", "QP#1", "MR#3", "MR#2", "MR#1", "CQ#2", "CQ#1",
                                          "PD#1", "context#1"});
  // Only the queue pair that had left RESET was moved to ERR.
  CHECK(s.calls(verb::modify_qp) == 2);
  CHECK(s.finish().empty());
}

TEST_CASE("case 11: any inversion is a finding") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  REQUIRE(context.register_memory(std::span(memory[0]), IBV_ACCESS_LOCAL_WRITE));
  CHECK(::ibv_dealloc_pd(context.pd()) == EBUSY);
  CHECK(::ibv_destroy_comp_channel(context.comp_channel(0)) == EBUSY);
  CHECK(context.reset());
  CHECK(test::count(s.finish(), shim::finding_kind::destroyed_in_use) == 2);
}

TEST_CASE(
    "case 13: EBUSY once at a queue pair's destroy keeps it, its CQ, channel, PD and device") {
  shim::session s;
  auto context = or_throw(rdma_context::open({.comp_channels = 2, .cqs = 2}));
  REQUIRE(context.register_memory(std::span(memory[0]), IBV_ACCESS_LOCAL_WRITE));
  ibv_qp* const qp = new_qp(context);
  s.fail(verb::destroy_qp).on(qp).with(EBUSY);
  const auto first = context.reset();
  REQUIRE_FALSE(first);
  CHECK(first.error().call() == verb::destroy_qp);
  CHECK(context.owned() ==
        context_inventory{.devices = 1, .pds = 1, .channels = 1, .cqs = 1, .qps = 1});
  CHECK(context.state() == context_state::releasing);
  CHECK(context.reset());
  CHECK(context.state() == context_state::disabled);
  const auto calls = s.calls();
  CHECK(context.reset());
  CHECK(s.calls() == calls);
  CHECK(s.calls(verb::destroy_qp) == 2);
  CHECK(s.calls(verb::dereg_mr) == 1);
  CHECK(s.finish().empty());
}

TEST_CASE("case 13: a queue pair that cannot be moved to ERR is reported, and destroyed") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  ibv_qp* const qp = new_qp(context);
  REQUIRE(qp_to_init(qp));
  s.fail(verb::modify_qp).with(EIO);
  const auto first = context.reset();
  REQUIRE_FALSE(first);
  CHECK(first.error().call() == verb::modify_qp);
  CHECK(s.live() == 0);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "queue pairs of a context: foreign and destroyed ones are refused, a failed destroy keeps it") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  ibv_qp* const qp = new_qp(context);
  s.fail(verb::destroy_qp).with(EBUSY);
  CHECK(context.destroy_qp(qp).error().code() == EBUSY);
  CHECK(context.owned().qps == 1);
  CHECK(context.destroy_qp(qp));
  CHECK(context.destroy_qp(qp).error().code() == EINVAL);
  CHECK(context.use_qp(qp).error().code() == EINVAL);
  CHECK(context.destroy_qp(nullptr).error().code() == EINVAL);
  CHECK(s.calls(verb::destroy_qp) == 2);
  CHECK(context.reset());
  auto attributes = attributes_on(context);
  CHECK(context.create_qp(attributes).error().code() == ESHUTDOWN);
  CHECK(s.finish().empty());
}

TEST_CASE("case 14: reset() waits for a posting thread, and refuses it from then on") {
  shim::session s;
  auto context = or_throw(rdma_context::open({.release_timeout = std::chrono::seconds(10)}));
  ibv_qp* const qp = new_qp(context);
  REQUIRE(qp_to_init(qp));
  std::atomic<bool> posting{false}, unexpected{false};
  std::thread poster([&] {
    for (;;) {
      auto lease = context.use_qp(qp);
      if (!lease) {
        unexpected = lease.error().code() != ESHUTDOWN;
        return;
      }
      ibv_qp_attr attr{};
      ibv_qp_init_attr init{};
      if (::ibv_query_qp(lease->get(), &attr, IBV_QP_STATE, &init) != 0) unexpected = true;
      posting = true;
    }
  });
  while (!posting) std::this_thread::yield();
  CHECK(context.reset());
  poster.join();
  CHECK_FALSE(unexpected);
  CHECK(s.live() == 0);
  CHECK(s.finish().empty());  // a use of a destroyed queue pair would have been found
}

TEST_CASE("case 14: a lease that is not given back bounds reset(), which then changes nothing") {
  shim::session s;
  auto context = or_throw(rdma_context::open({.release_timeout = std::chrono::milliseconds(20)}));
  ibv_qp* const qp = new_qp(context);
  {
    auto lease = or_throw(context.use_qp(qp));
    const auto owned = context.owned();
    const auto refused = context.reset();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == EBUSY);
    CHECK(refused.error().detail() ==
          "queue pairs are still in use after 20 ms; nothing was released");
    CHECK(context.owned() == owned);
    CHECK(context.state() == context_state::enabled);
    CHECK(context.destroy_qp(qp).error().detail() == "1 lease(s) of it are still held");
    CHECK(context.use_qp(qp));
    CHECK(context.register_memory(std::span(memory[0]), IBV_ACCESS_LOCAL_WRITE));
    auto moved = std::move(lease);
    lease = std::move(moved);
    CHECK(lease.get() == qp);
  }
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("case 14: the longest release_timeout waits without end and does not wrap") {
  shim::session s;
  auto context =
      or_throw(rdma_context::open({.release_timeout = std::chrono::milliseconds::max()}));
  ibv_qp* const qp = new_qp(context);
  std::atomic<bool> leased{false}, go{false};
  std::thread user([&] {
    auto lease = context.use_qp(qp);
    leased = lease.has_value();
    while (!go) std::this_thread::yield();
  });
  while (!leased) std::this_thread::yield();
  std::thread resetter([&] { CHECK(context.reset()); });
  while (context.state() != context_state::releasing) std::this_thread::yield();
  go = true;
  user.join();
  resetter.join();
  CHECK(context.owned().total() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("the sweep of a context with queue pairs and memory is clean at order 2") {
  const auto report = shim::sweep(
      []() -> result<void> {
        rdma_context context({});
        if (auto enabled = context.enable(); !enabled) return enabled;
        auto attributes = attributes_on(context);
        auto kept = context.create_qp(attributes);
        if (!kept) return failure(kept.error());
        if (auto done = qp_to_init(*kept); !done) return done;
        auto destroyed = context.create_qp(attributes);
        if (!destroyed) return failure(destroyed.error());
        if (auto gone = context.destroy_qp(*destroyed); !gone) return gone;
        if (auto mr = context.register_memory(std::span(memory[0]), IBV_ACCESS_LOCAL_WRITE); !mr)
          return failure(mr.error());
        return context.reset();
      },
      {.order = 2});
  INFO(report.text());
  CHECK(report.clean());
}

TEST_CASE(
    "case 20: a fatal device error makes the context lost; reset() returns, its error says so, and "
    "the context can be opened again") {
  shim::session s({{{.name = "sim0"}, {.name = "sim1"}}});
  auto context =
      or_throw(rdma_context::open({.device_name = "sim0", .comp_channels = 2, .cqs = 3}));
  REQUIRE(context.register_memory(std::span(memory[0]), IBV_ACCESS_LOCAL_WRITE));
  s.unplug("sim0");
  CHECK(context.process_async_events().value() == 1);
  CHECK(context.state() == context_state::lost);
  CHECK_FALSE(context.ready());
  CHECK_FALSE(context.resume());
  CHECK(context.enable().error().message() ==
        "ibvxx on sim0: Input/output error (EIO): the context is lost");

  const auto first = context.reset();
  REQUIRE_FALSE(first);
  CHECK(first.error().code() == EIO);
  CHECK(first.error().detail().find("device lost") != std::string_view::npos);
  CHECK(context.state() == context_state::disabled);
  CHECK(context.owned().total() == 0);
  CHECK(s.live() == 0);
  const auto calls = s.calls();
  CHECK(context.reset());
  CHECK(s.calls() == calls);
  CHECK(s.finish().empty());
}

TEST_CASE("case 20: destroying a lost context reports each failure and closes the device") {
  shim::session s;
  {
    auto context = or_throw(rdma_context::open({}));
    s.unplug("sim0");
    REQUIRE(context.process_async_events());
    CHECK_FALSE(context.reset());
  }
  CHECK(s.live() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("case 20: reset() of a device that is gone returns, although its event was not read") {
  shim::session s;
  auto context = or_throw(rdma_context::open({.comp_channels = 2, .cqs = 3}));
  REQUIRE(context.register_memory(std::span(memory[0]), IBV_ACCESS_LOCAL_WRITE));
  new_qp(context);
  s.unplug("sim0");
  const auto first = context.reset();
  REQUIRE_FALSE(first);
  CHECK(first.error().code() == EIO);
  CHECK(first.error().detail().ends_with("device lost"));
  CHECK(context.state() == context_state::disabled);
  CHECK(s.live() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 20: on a lost device, an object whose destroy fails with another error than EIO is "
    "kept") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  s.unplug("sim0");
  s.fail(verb::dealloc_pd).with(EBUSY);
  CHECK_FALSE(context.reset());
  CHECK(context.owned().pds == 1);
  CHECK(context.state() == context_state::releasing);
  CHECK_FALSE(context.reset());
  CHECK(context.owned().total() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 20: EIO from one destroy does not make the context lost while other verbs succeed") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  s.fail(verb::dealloc_pd).with(EIO);
  const auto first = context.reset();
  REQUIRE_FALSE(first);
  CHECK(first.error().detail().find("device lost") == std::string_view::npos);
  CHECK(context.owned().pds == 1);
  CHECK(context.owned().devices == 1);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 20: a device that is unplugged at any call of enable() or reset() leaves nothing open") {
  const auto life = [] {
    std::optional<error> told;
    rdma_context context({.comp_channels = 2, .cqs = 2});
    if (auto enabled = context.enable(); !enabled)
      told = enabled.error();
    else if (auto gone = context.reset(); !gone)
      told = gone.error();
    return told;
  };
  std::uint64_t calls = 0;
  {
    shim::session undisturbed;
    REQUIRE_FALSE(life());
    calls = undisturbed.calls();
    REQUIRE(undisturbed.finish().empty());
  }
  std::size_t told = 0;
  for (std::uint64_t call = 1; call <= calls; ++call) {
    INFO("at call " << call << " of " << calls);
    const test::teardown_catcher teardown;
    shim::session s;
    s.at_call(call).unplug("sim0");
    told += life() ? 1U : 0U;
    CHECK(s.live() == 0);
    const auto findings = s.finish();
    INFO(test::lines(findings));
    CHECK(findings.empty());
  }
  CHECK(told > calls / 2);
}

TEST_CASE("case 20: the destructor of a context whose device is gone closes it and reports that") {
  shim::session s;
  const test::teardown_catcher teardown;
  {
    auto context = or_throw(rdma_context::open({}));
    new_qp(context);
    s.unplug("sim0");
  }
  REQUIRE(teardown.count() > 0);
  CHECK(teardown[0].code() == EIO);
  CHECK(teardown[0].detail().ends_with("device lost"));
  CHECK(s.live() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("case 20: EIO instead of an event means lost, too, and a moved context stays lost") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  s.fail(verb::get_async_event).with(EIO);
  CHECK(context.process_async_events().error().code() == EIO);
  CHECK(context.state() == context_state::lost);
  rdma_context moved(std::move(context));
  CHECK(context.state() == context_state::disabled);
  CHECK(moved.state() == context_state::lost);
  CHECK(moved.reset());
  CHECK(moved.enable());
  CHECK(moved.state() == context_state::enabled);
  CHECK(moved.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("reset() drains the flushed completions of its queue pairs from the CQs") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  ibv_qp* const qp = new_qp(context);
  REQUIRE(qp_to_init(qp));
  for (std::uint64_t id = 1; id <= 3; ++id) {
    ibv_recv_wr receive{id, nullptr, nullptr, 0};
    REQUIRE(post_recv(qp, &receive));
  }
  s.fail(verb::destroy_cq).persistently().with(EBUSY);
  CHECK_FALSE(context.reset());
  REQUIRE(context.cq(0));
  ibv_wc completions[4];
  CHECK(poll_cq(context.cq(0), completions).value() == 0);
  s.clear_rules();
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::teardown_cases
