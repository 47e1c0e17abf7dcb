// Every call that enable() makes, failed in turn.
#include <ctime>

#include "suite.hpp"
#include "support/teardown.hpp"
#include "support/trace.hpp"

namespace ibvxx::enable_test {

namespace {

const context_config config{.comp_channels = 2, .cqs = 3};

std::vector<shim::call_record> calls_of_enable() {
  shim::session s;
  rdma_context context(config);
  REQUIRE(context.enable());
  auto trace = s.trace();
  REQUIRE(context.reset());
  REQUIRE(s.finish().empty());
  return trace;
}

void check_shows_nothing(const rdma_context& context) {
  CHECK(context.state() == context_state::disabled);
  CHECK(context.owned() == context_inventory{});
  CHECK(context.device() == nullptr);
  CHECK(context.pd() == nullptr);
  CHECK(context.epoll_fd() == -1);
  CHECK(context.comp_channel(0) == nullptr);
  CHECK(context.comp_channel_count() == 0);
  CHECK(context.cq(0) == nullptr);
  CHECK(context.cq_count() == 0);
  CHECK(context.notification_cq() == nullptr);
  CHECK(context.port() == 0);
  CHECK(context.registered_bytes() == 0);
  CHECK_FALSE(context.ready());
}

/// The rule that fails call `target` of enable(): the nth of its verb.
std::uint64_t nth_of_its_verb(const std::vector<shim::call_record>& trace, std::size_t target) {
  std::uint64_t nth = 0;
  for (std::size_t i = 0; i <= target; ++i) nth += trace[i].call == trace[target].call ? 1U : 0U;
  return nth;
}

int likely_errno(verb call) {
  switch (call) {
    case verb::epoll_create1:
    case verb::create_comp_channel:
      return EMFILE;
    case verb::fcntl:
      return EBADF;
    case verb::query_device:
    case verb::query_port:
    case verb::query_gid_table:
    case verb::req_notify_cq:
      return EIO;
    default:
      return ENOMEM;
  }
}

}  // namespace

TEST_CASE(
    "enable() that fails at any call releases exactly what it made, in reverse, and can be "
    "repeated") {
  const auto undisturbed = calls_of_enable();
  std::size_t failed = 0;
  for (std::size_t target = 0; target < undisturbed.size(); ++target) {
    const verb call = undisturbed[target].call;
    if (call == verb::free_device_list) continue;  // void: cannot fail
    INFO("failing " << test::describe(undisturbed[target]));
    ++failed;

    shim::session s;
    const test::teardown_catcher teardown;
    rdma_context context(config);
    s.fail(call).nth(nth_of_its_verb(undisturbed, target)).with(likely_errno(call));
    const auto enabled = context.enable();

    REQUIRE_FALSE(enabled);
    CHECK(enabled.error().call() == call);
    CHECK(enabled.error().code() == likely_errno(call));
    CHECK_FALSE(enabled.error().message().empty());
    CHECK(s.live() == 0);
    const auto trace = s.trace();
    auto reversed = test::created(trace);
    std::reverse(reversed.begin(), reversed.end());
    CHECK(test::destroyed(trace) == reversed);
    CHECK(teardown.count() == 0);
    check_shows_nothing(context);

    const auto calls_before = s.calls();
    CHECK(context.reset());
    CHECK(s.calls() == calls_before);

    CHECK(context.enable());
    CHECK(context.state() == context_state::enabled);
    CHECK(context.owned().total() == 1 + 1 + 1 + 2 + 3 + 1);
    CHECK(context.reset());
    check_shows_nothing(context);
    CHECK(s.finish().empty());
  }
  // device list, open, 2 queries, GID table and its memory, PD, epoll, async descriptor (3),
  // channels (memory, 2 x 4), CQs (memory, 3), notification CQ, 4 times arming, the last port query
  CHECK(failed == 4 + 2 + 1 + 1 + 3 + 1 + 8 + 1 + 3 + 1 + 4 + 1);
}

TEST_CASE("a second enable() on an enabled context does nothing") {
  shim::session s;
  rdma_context context(config);
  REQUIRE(context.enable());
  const auto before = s.calls();
  CHECK(context.enable());
  CHECK(s.calls() == before);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "the sweep of enable() and reset() with 4 channels and 8 CQs is clean, at order 1 and 2") {
  const auto body = []() -> result<void> {
    rdma_context context({.comp_channels = 4, .cqs = 8});
    if (auto enabled = context.enable(); !enabled) return enabled;
    return context.reset();
  };
  // Processor time, so that a busy machine does not count.
  [[maybe_unused]] const auto began = std::clock();
  const auto single = shim::sweep(body);
  [[maybe_unused]] const auto after_single = std::clock();
  const auto twofold = shim::sweep(body, {.order = 2});
  [[maybe_unused]] const auto after_twofold = std::clock();

  INFO(single.text());
  CHECK(single.clean());
  INFO(twofold.text());
  CHECK(twofold.clean());
  CHECK(twofold.runs > 2 * single.runs);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(after_single - began < 1 * CLOCKS_PER_SEC);
  CHECK(after_twofold - after_single < 20 * CLOCKS_PER_SEC);
#endif

  const auto swept = [&](verb call) {
    return std::count(single.calls.begin(), single.calls.end(), call);
  };
  CHECK(swept(verb::create_comp_channel) == 4);
  CHECK(swept(verb::create_cq) == 9);
  CHECK(swept(verb::req_notify_cq) == 9);
  CHECK(swept(verb::fcntl) == 10);
  CHECK(swept(verb::epoll_ctl) == 5);
  CHECK(swept(verb::destroy_cq) == 9);
  CHECK(swept(verb::destroy_comp_channel) == 4);
  CHECK(swept(verb::dealloc_pd) == 1);
  CHECK(swept(verb::close) == 1);
  CHECK(swept(verb::allocate) == 3);
}

TEST_CASE(
    "the sweep of a context that registers memory and is released by its destructor is clean at "
    "order 2") {
  const auto body = []() -> result<void> {
    alignas(64) std::byte memory[256];
    auto context = rdma_context::open({.comp_channels = 1, .cqs = 2});
    if (!context) return failure(context.error());
    auto kept = context->register_memory(std::span(memory, 128), IBV_ACCESS_LOCAL_WRITE);
    if (!kept) return failure(kept.error());
    auto removed = context->register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
    if (!removed) return failure(removed.error());
    return context->unregister_memory(*removed);
  };
  const auto report = shim::sweep(body, {.order = 2});
  INFO(report.text());
  CHECK(report.clean());
}

TEST_CASE("two sweeps of the same body report the same") {
  const auto body = []() -> result<void> {
    rdma_context context({.comp_channels = 2, .cqs = 2});
    if (auto enabled = context.enable(); !enabled) return enabled;
    return context.reset();
  };
  CHECK(shim::sweep(body, {.order = 2}).text() == shim::sweep(body, {.order = 2}).text());
}

}  // namespace ibvxx::enable_test
