// Cases from the field: owners. That every owner type destroys exactly once is in
// unit/owner_test.cpp (case 7).
#include "suite.hpp"
#include "support/teardown.hpp"
#include "support/trace.hpp"

namespace ibvxx::owner_cases {

TEST_CASE(
    "case 8: the creation of a queue pair with one CQ for both directions fails: everything is "
    "destroyed once") {
  shim::session s;
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    auto pd = or_throw(alloc_pd(context));
    auto cq = or_throw(create_cq(context, 16));
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq.get();
    attributes.cap = {4, 4, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    s.fail(verb::create_qp).with(ENOMEM);
    const auto failed = create_qp(pd, attributes);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().call() == verb::create_qp);
    auto qp = or_throw(create_qp(pd, attributes));
    CHECK(cq.reset().error().code() == EBUSY);
    CHECK(qp.reset());
  }
  CHECK(s.calls(verb::destroy_qp) == 1);
  CHECK(s.calls(verb::destroy_cq) == 2);
  CHECK(s.calls(verb::dealloc_pd) == 1);
  const auto findings = s.finish();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == shim::finding_kind::destroyed_in_use);
}

TEST_CASE("case 9: guard bytes around every structure that a verb fills do not change") {
  shim::session s;
  auto context = or_throw(open_device((*get_device_list())[0]));
  auto pd = or_throw(alloc_pd(context));
  auto cq = or_throw(create_cq(context, 16));
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq.get();
  attributes.cap = {4, 4, 1, 1, 0};
  attributes.qp_type = IBV_QPT_RC;
  auto qp = or_throw(create_qp(pd, attributes));
  const auto guarded = [](auto structure, auto fill) {
    struct {
      unsigned char before[64];
      decltype(structure) filled;
      unsigned char after[64];
    } room;
    std::memset(&room, 0xa5, sizeof room);
    const bool done = fill(&room.filled);
    const auto intact = [](const auto& guard) {
      return std::all_of(std::begin(guard), std::end(guard),
                         [](unsigned char byte) { return byte == 0xa5; });
    };
    return done && intact(room.before) && intact(room.after);
  };
  CHECK(guarded(ibv_device_attr{},
                [&](auto* out) { return ::ibv_query_device(context.get(), out) == 0; }));
  CHECK(guarded(ibv_device_attr_ex{}, [&](auto* out) {
    return ::ibv_query_device_ex(context.get(), nullptr, out) == 0;
  }));
  CHECK(guarded(ibv_port_attr{},
                [&](auto* out) { return ibv_query_port(context.get(), 1, out) == 0; }));
  CHECK(guarded(ibv_gid{},
                [&](auto* out) { return ::ibv_query_gid(context.get(), 1, 0, out) == 0; }));
  CHECK(guarded(ibv_gid_entry{},
                [&](auto* out) { return ::ibv_query_gid_ex(context.get(), 1, 0, out, 0) == 0; }));
  ibv_qp_init_attr init{};
  CHECK(guarded(ibv_qp_attr{}, [&](auto* out) {
    return ::ibv_query_qp(qp.get(), out, IBV_QP_STATE, &init) == 0;
  }));
  ibv_qp_attr attr{};
  CHECK(guarded(ibv_qp_init_attr{}, [&](auto* out) {
    return ::ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, out) == 0;
  }));
  CHECK(qp.reset());
  CHECK(cq.reset());
  CHECK(pd.reset());
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 10: EBUSY in a destructor: one diagnostic that names the verb, nothing thrown; reset() "
    "returns it") {
  shim::session s;
  const test::teardown_catcher teardown;
  auto context = or_throw(open_device((*get_device_list())[0]));
  ibv_pd* left = nullptr;
  std::byte memory[64];
  ibv_mr* mr = nullptr;
  {
    auto pd = or_throw(alloc_pd(context));
    left = pd.get();
    mr = or_throw(reg_mr(pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE)).release();
    CHECK(pd.reset().error().code() == EBUSY);
  }
  REQUIRE(teardown.count() == 1);
  CHECK(teardown[0].message() ==
        "ibv_dealloc_pd on sim0: Device or resource busy (EBUSY): still used by a memory region, "
        "queue pair, SRQ, AH, MW or WQ");
  CHECK(unique_mr(mr).reset());
  CHECK(unique_pd(left).reset());
  CHECK(context.reset());
  CHECK(test::count(s.finish(), shim::finding_kind::destroyed_in_use) == 2);
}

}  // namespace ibvxx::owner_cases
