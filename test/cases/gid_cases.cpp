// Cases from the field: which GID a context takes. What each rule of a policy does is in
// unit/gid_policy_test.cpp.
#include <random>

#include "suite.hpp"
#include "support/seed.hpp"

namespace ibvxx::gid_cases {

namespace {

constexpr auto v1 = IBV_GID_TYPE_ROCE_V1;
constexpr auto v2 = IBV_GID_TYPE_ROCE_V2;
constexpr std::uint32_t loopback = 1;  // the one network device that every machine has

shim::simulated machine_with(std::vector<shim::gid_slot> table, int size) {
  return {{{.ports = {{.gid_table_size = size, .gids = std::move(table)}}}}};
}

}  // namespace

TEST_CASE(
    "case 30: of a mixed table, RoCE v2 with a network device is chosen and link-local comes last, "
    "in any order of the entries; of equals the lower index is chosen") {
  const shim::gid_slot best{shim::gid("::ffff:10.0.0.1"), v2, loopback};
  std::vector<shim::gid_slot> table = {{shim::gid("fe80::1"), v1, loopback},
                                       {shim::gid("fe80::1"), v2, loopback},
                                       {shim::gid("::ffff:10.0.0.1"), v1, loopback},
                                       best,
                                       {shim::gid("fd00::1"), v1, loopback},
                                       {shim::gid("2001:db8::1"), v2, 0},
                                       {shim::gid("2001:db8::2"), v1, 0},
                                       {}};
  std::mt19937 random(test::seed("case 30"));
  for (int round = 0; round < 50; ++round) {
    std::shuffle(table.begin(), table.end(), random);
    shim::session s(machine_with(table, 16));
    auto context = or_throw(rdma_context::open({}));
    const auto gid = context.gid();
    CHECK(std::memcmp(gid.entry.gid.raw, best.gid.raw, sizeof best.gid.raw) == 0);
    CHECK(gid.entry.gid_type == static_cast<std::uint32_t>(v2));
    CHECK(context.reset());
    CHECK(s.finish().empty());
  }
  // Two alike: the lower index, every time.
  shim::session s(machine_with({{}, best, {}, best}, 16));
  auto context = or_throw(rdma_context::open({}));
  CHECK(context.gid().entry.gid_index == 1);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("case 30: a configured index is used, and only the reason warns") {
  shim::session s(machine_with(
      {{shim::gid("fe80::1"), v1, loopback}, {shim::gid("::ffff:10.0.0.1"), v2, loopback}}, 16));
  auto context = or_throw(rdma_context::open({.gid_index = 0}));
  CHECK(context.state() == context_state::enabled);
  CHECK(context.gid().entry.gid_index == 0);
  CHECK(context.gid().reason.view() == "configured by index; behind index 1 by family: link-local");
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("case 31: 256 slots, 0 to 5 empty, 6 of v1, 7 of v2: 7 is chosen") {
  std::vector<shim::gid_slot> table(8);
  table[6] = {shim::gid("::ffff:10.0.0.1"), v1, loopback};
  table[7] = {shim::gid("::ffff:10.0.0.1"), v2, loopback};
  shim::session s(machine_with(table, 256));
  auto context = or_throw(rdma_context::open({}));
  CHECK(context.gid().entry.gid_index == 7);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("case 31: all slots empty is an error of its own, and everything unwinds") {
  shim::session s(machine_with({}, 256));
  rdma_context context({});
  const auto enabled = context.enable();
  REQUIRE_FALSE(enabled);
  CHECK(enabled.error().code() == ENODATA);
  CHECK(enabled.error().detail() == "no usable GID: port 1 has no entry");
  CHECK(context.state() == context_state::disabled);
  CHECK(s.live() == 0);
  s.set_gid("sim0", 1, 3, {shim::gid("::ffff:10.0.0.1"), v2, loopback});
  CHECK(context.enable());
  CHECK(context.gid().entry.gid_index == 3);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("after a change of the GID table the whole policy applies, excluded names included") {
  shim::session s(machine_with({{}, {}, {shim::gid("2001:db8::2"), v2, loopback}}, 16));
  auto context = [] {
    std::vector<std::string> excluded = {"lo*",
                                         "eth17"};  // destroyed before the policy is applied again
    return rdma_context::open({.gids = {.excluded_devices = excluded}});
  }();
  REQUIRE_FALSE(context);
  CHECK(context.error().code() == ENODATA);
  s.set_gid("sim0", 1, 1, {shim::gid("2001:db8::1"), v2, 0});
  context = [] {
    std::vector<std::string> excluded = {"lo*", "eth17"};
    return rdma_context::open({.gids = {.excluded_devices = excluded}});
  }();
  REQUIRE(context);
  CHECK(context->gid().entry.gid_index == 1);
  s.set_gid("sim0", 1, 0, {shim::gid("2001:db8::3"), v2, loopback});
  CHECK(context->process_async_events());
  CHECK(context->gid().entry.gid_index == 1);
  CHECK(context->reset());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::gid_cases
