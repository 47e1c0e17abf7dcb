// What a session keeps of many calls, objects and findings, and what it finds among many.
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>

#include "suite.hpp"
#include "support/connect.hpp"
#include "support/loopback.hpp"
#include "support/seed.hpp"
#include "support/trace.hpp"

namespace ibvxx::shim_scale_test {

using shim::finding_kind;

namespace {

constexpr std::size_t more_than_remembered = 10'000;

struct fixture {
  shim::session s;
  device_list list = or_throw(get_device_list());
  ibv_context* context = ::ibv_open_device(list[0]);
  ibv_pd* pd = ::ibv_alloc_pd(context);

  fixture() : s({{shim::device_description::hardware()}}) {}
  explicit fixture(const shim::session_options& options)
      : s({{shim::device_description::hardware()}}, options) {}

  void make_and_destroy_many() const {
    for (std::size_t i = 0; i < more_than_remembered; ++i)
      REQUIRE(::ibv_dealloc_pd(::ibv_alloc_pd(context)) == 0);
  }
  [[nodiscard]] std::vector<shim::finding> finish() {
    CHECK(::ibv_dealloc_pd(pd) == 0);
    CHECK(::ibv_close_device(context) == 0);
    list = {};
    return s.finish();
  }
};

int post_receive(ibv_qp* qp, std::uint64_t wr_id) {
  ibv_recv_wr wr{wr_id, nullptr, nullptr, 0};
  ibv_recv_wr* bad = nullptr;
  return ::ibv_post_recv(qp, &wr, &bad);
}

int post_send(ibv_qp* qp, std::uint64_t wr_id) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  return ::ibv_post_send(qp, &wr, &bad);
}

/// The work requests that have completed, in order.
std::vector<std::uint64_t> completed(ibv_cq* cq) {
  std::vector<std::uint64_t> ids;
  for (ibv_wc wc; ::ibv_poll_cq(cq, 1, &wc) == 1;) {
    CHECK(wc.status == IBV_WC_SUCCESS);
    ids.push_back(wc.wr_id);
  }
  return ids;
}

}  // namespace

TEST_CASE("the same misuse again is counted, and another object's is a finding of its own") {
  fixture f;
  ibv_cq* const first = ::ibv_create_cq(f.context, 1, nullptr, nullptr, 0);
  ibv_cq* const second = ::ibv_create_cq(f.context, 1, nullptr, nullptr, 0);
  CHECK(::ibv_destroy_cq(first) == 0);
  CHECK(::ibv_destroy_cq(second) == 0);
  ibv_wc wc;
  for (int i = 0; i < 20'000; ++i) CHECK(::ibv_poll_cq(first, 1, &wc) == -1);
  CHECK(::ibv_poll_cq(second, 1, &wc) == -1);
  CHECK(::ibv_req_notify_cq(second, 0) != 0);
  const auto found = f.finish();
  INFO(test::lines(found));
  REQUIRE(found.size() == 3);
  CHECK(found[0].count == 20'000);
  CHECK(found[0].text.find("CQ#1 of sim0") != std::string::npos);
  CHECK(found[0].text.find(" (20000 times): let the object") != std::string::npos);
  CHECK(found[1].count == 1);
  CHECK(found[1].text.find("CQ#2 of sim0") != std::string::npos);
  CHECK(found[1].text.find(" times)") == std::string::npos);
  CHECK(found[2].text.find("ibv_req_notify_cq") != std::string::npos);
}

TEST_CASE("an expected finding is expected once for each time, and is not counted") {
  fixture f;
  ibv_cq* const gone = ::ibv_create_cq(f.context, 1, nullptr, nullptr, 0);
  CHECK(::ibv_destroy_cq(gone) == 0);
  f.s.expect(finding_kind::use_after_destroy);
  f.s.expect(finding_kind::use_after_destroy);
  for (int i = 0; i < 3; ++i) CHECK(::ibv_req_notify_cq(gone, 0) != 0);
  const auto found = f.finish();
  REQUIRE(found.size() == 1);
  CHECK(found[0].count == 1);
}

TEST_CASE("of very many findings of a kind the first are listed, and one says how many more") {
  fixture f;
  std::vector<ibv_pd> none(shim::most_findings_of_a_kind + 500);
  for (ibv_pd& one : none) CHECK(::ibv_dealloc_pd(&one) != 0);
  CHECK(::ibv_dealloc_pd(&none.front()) != 0);
  const auto found = f.finish();
  REQUIRE(found.size() == shim::most_findings_of_a_kind + 1);
  CHECK(found.front().count == 2);
  CHECK(found.back().kind == finding_kind::foreign_pointer);
  CHECK(found.back().count == 500);
  CHECK(found.back().text.find("500 more") == 0);
}

TEST_CASE("the trace has the latest calls, as many as the session's options say") {
  fixture f({.trace_capacity = 10});
  ibv_cq* const cq = ::ibv_create_cq(f.context, 1, nullptr, nullptr, 0);
  for (int i = 0; i < 100; ++i) CHECK(::ibv_req_notify_cq(cq, 0) == 0);
  f.s.fail(verb::destroy_cq).with(EIO);
  CHECK(::ibv_destroy_cq(cq) == EIO);
  const auto trace = f.s.trace();
  REQUIRE(trace.size() == 10);
  for (std::size_t i = 0; i < trace.size(); ++i)
    CHECK(trace[i].index == f.s.calls() - (trace.size() - 1 - i));
  CHECK(trace.front().call == verb::req_notify_cq);
  CHECK(trace.back().injected == EIO);
  CHECK(trace.back().subject == "CQ#1 of sim0");
  CHECK(::ibv_destroy_cq(cq) == 0);
  CHECK(f.finish().empty());
}

TEST_CASE("a sweep fails every call, whatever its sessions keep of the trace") {
  const auto body = [] {
    auto list = get_device_list();
    if (!list) return result<void>(failure(list.error()));
    auto context = open_device((*list)[0]);
    if (!context) return result<void>(failure(context.error()));
    auto pd = alloc_pd(*context);
    if (!pd) return result<void>(failure(pd.error()));
    return result<void>();
  };
  shim::sweep_options small;
  small.session.trace_capacity = 1;
  const auto all = shim::sweep(body);
  const auto swept = shim::sweep(body, small);
  CHECK(swept.calls == all.calls);
  CHECK(swept.runs == all.runs);
}

TEST_CASE("a late use is recognised among the latest destroyed objects, and refused later") {
  fixture f;
  ibv_pd* const gone = ::ibv_alloc_pd(f.context);
  CHECK(::ibv_dealloc_pd(gone) == 0);
  for (int i = 0; i < 4000; ++i) REQUIRE(::ibv_dealloc_pd(::ibv_alloc_pd(f.context)) == 0);
  CHECK(::ibv_dealloc_pd(gone) != 0);
  f.make_and_destroy_many();
  // Another object may have its address by now; this one was never made.
  ibv_pd never{};
  CHECK(::ibv_dealloc_pd(&never) != 0);
  const auto found = f.finish();
  INFO(test::lines(found));
  REQUIRE(found.size() == 2);
  CHECK(found[0].kind == finding_kind::double_destroy);
  CHECK(found[1].kind == finding_kind::foreign_pointer);
}

TEST_CASE("a closed device's objects that are left go on, however many objects end meanwhile") {
  fixture f;
  ibv_context* const other = ::ibv_open_device(f.list[0]);
  ibv_pd* const left = ::ibv_alloc_pd(other);
  f.s.expect(finding_kind::destroyed_in_use);
  CHECK(::ibv_close_device(other) == 0);
  f.make_and_destroy_many();
  char memory[64];
  ibv_mr* const mr = ::ibv_reg_mr(left, memory, sizeof memory, 0);
  REQUIRE(mr);
  CHECK(::ibv_dereg_mr(mr) == 0);
  f.make_and_destroy_many();
  CHECK(::ibv_dealloc_pd(left) == 0);
  f.make_and_destroy_many();
  CHECK(f.finish().empty());
}

TEST_CASE("an imported domain is the original's, however many objects end after that") {
  fixture f;
  ibv_pd* const original = ::ibv_alloc_pd(f.context);
  ibv_pd* const imported = ::ibv_import_pd(f.context, original->handle);
  ibv_pd* const again = ::ibv_import_pd(f.context, original->handle);
  REQUIRE(imported);
  REQUIRE(again);
  CHECK(::ibv_dealloc_pd(original) == 0);
  f.make_and_destroy_many();
  CHECK(::ibv_import_pd(f.context, imported->handle + 1'000'000) == nullptr);
  ibv_pd* const third = ::ibv_import_pd(f.context, imported->handle);
  CHECK(third);
  ::ibv_unimport_pd(third);
  ::ibv_unimport_pd(again);
  ::ibv_unimport_pd(imported);
  CHECK(f.finish().empty());
}

TEST_CASE("a rule about a destroyed object matches none that is made later") {
  fixture f;
  ibv_pd* const gone = ::ibv_alloc_pd(f.context);
  f.s.fail(verb::alloc_mw).on(gone).with(ENOMEM);
  CHECK(::ibv_dealloc_pd(gone) == 0);
  for (std::size_t i = 0; i < more_than_remembered; ++i) {
    ibv_pd* const one = ::ibv_alloc_pd(f.context);
    ibv_mw* const window = ::ibv_alloc_mw(one, IBV_MW_TYPE_1);
    REQUIRE(window);
    REQUIRE(::ibv_dealloc_mw(window) == 0);
    REQUIRE(::ibv_dealloc_pd(one) == 0);
  }
  const auto found = f.finish();
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == finding_kind::unfired_rule);
}

TEST_CASE("of many objects that use one the first are named, and how many more there are") {
  fixture f;
  char memory[64];
  std::vector<ibv_mr*> regions;
  for (int i = 0; i < 100; ++i) regions.push_back(::ibv_reg_mr(f.pd, memory, sizeof memory, 0));
  CHECK(::ibv_dealloc_pd(f.pd) == EBUSY);
  for (ibv_mr* mr : regions) CHECK(::ibv_dereg_mr(mr) == 0);
  const auto found = f.finish();
  REQUIRE(found.size() == 1);
  CHECK(found[0].text.find("by MR#1 of sim0, MR#2 of sim0, ") != std::string::npos);
  CHECK(found[0].text.find("MR#16 of sim0 and 84 more") != std::string::npos);
}

TEST_CASE("closing an unplugged device ends everything on it, and freed memory is nobody's then") {
  shim::session s({{shim::device_description::hardware()}});
  auto list = or_throw(get_device_list());
  ibv_context* const context = ::ibv_open_device(list[0]);
  ibv_pd* const pd = ::ibv_alloc_pd(context);
  auto memory = std::make_unique<char[]>(4096);
  // More than are remembered: what the session still finds of them would be freed memory.
  for (std::size_t i = 0; i < more_than_remembered; ++i)
    REQUIRE(::ibv_reg_mr(pd, memory.get() + i % 1000, 64, 0));
  ibv_srq_init_attr wanted{nullptr, {4, 1, 0}};
  ibv_srq* const srq = ::ibv_create_srq(pd, &wanted);
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory.get()), 64, 0x100};
  ibv_recv_wr receive{1, nullptr, &piece, 1}, *bad = nullptr;
  REQUIRE(::ibv_post_srq_recv(srq, &receive, &bad) == 0);
  s.unplug("sim0");
  CHECK(::ibv_close_device(context) == 0);
  CHECK(s.live() == 1);  // the list
  memory.reset();
  list = {};
  CHECK(s.finish().empty());
}

TEST_CASE("freed memory is found in every region that has it, and after a region moved") {
  fixture f;
  // Mapped, since freed bytes of the heap are soon those of another block, which is freed as well.
  constexpr std::size_t page = 4096;
  const auto map = [] {
    void* const pages =
        ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    return static_cast<std::byte*>(pages);
  };
  std::byte* const first = map();
  std::byte* const second = map();
  ibv_cq* const cq = ::ibv_create_cq(f.context, 4, nullptr, nullptr, 0);
  ibv_srq_init_attr wanted{nullptr, {8, 1, 0}};
  ibv_srq* const srq = ::ibv_create_srq(f.pd, &wanted);
  std::vector<ibv_mr*> regions;
  for (std::size_t i = 0; i < 4; ++i) {  // each within the one before
    regions.push_back(::ibv_reg_mr(f.pd, first + 16 * i, 256 - 32 * i, IBV_ACCESS_LOCAL_WRITE));
    REQUIRE(regions.back());
  }
  const auto post = [&](const std::byte* at, std::uint32_t lkey) {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(at), 16, lkey};
    ibv_recv_wr receive{lkey, nullptr, &piece, 1}, *bad = nullptr;
    REQUIRE(::ibv_post_srq_recv(srq, &receive, &bad) == 0);
  };
  // The innermost moves away, and the one around it is not named.
  REQUIRE(::ibv_rereg_mr(regions[3], IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, second, 256, 0) ==
          0);
  for (const std::size_t i : {0U, 1U}) post(first + 64, regions[i]->lkey);
  post(second, regions[3]->lkey);
  CHECK(::munmap(first, page) == 0);
  CHECK(test::count(f.s.findings(), finding_kind::memory_in_use) == 2);
  CHECK(::munmap(second, page) == 0);
  CHECK(test::count(f.s.findings(), finding_kind::memory_in_use) == 3);
  CHECK(::ibv_destroy_srq(srq) == 0);
  for (ibv_mr* mr : regions) CHECK(::ibv_dereg_mr(mr) == 0);  // no request is left
  CHECK(::ibv_destroy_cq(cq) == 0);
  CHECK(test::count(f.finish(), finding_kind::memory_in_use) == 3);
}

TEST_CASE("strict sessions find a buffer that is posted again, among any others") {
  const auto seed = test::seed("posted buffers");
  std::mt19937 random(seed);
  fixture f({.strict = true});
  std::vector<std::byte> memory(4096);
  ibv_mr* const mr = ::ibv_reg_mr(f.pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
  ibv_cq* const cq = ::ibv_create_cq(f.context, 256, nullptr, nullptr, 0);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq;
  wanted.cap = {1, 100, 1, 2, 0};
  wanted.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = ::ibv_create_qp(f.pd, &wanted);
  std::size_t expected = 0;
  for (int round = 0; round < 30; ++round) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    REQUIRE(::ibv_modify_qp(qp, &to,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
            0);
    std::vector<bool> taken(memory.size());
    for (int i = 0; i < 60; ++i) {
      ibv_sge pieces[2];
      bool reused = false;
      for (ibv_sge& piece : pieces) {
        const std::size_t begin = random() % 4000, length = random() % 24;
        piece = {reinterpret_cast<std::uintptr_t>(memory.data() + begin),
                 static_cast<std::uint32_t>(length), mr->lkey};
        for (std::size_t at = begin; at < begin + length; ++at) reused = reused || taken[at];
      }
      for (const ibv_sge& piece : pieces)
        for (std::size_t at = 0; at < piece.length; ++at)
          taken[piece.addr - reinterpret_cast<std::uintptr_t>(memory.data()) + at] = true;
      expected += reused ? 1U : 0U;
      ibv_recv_wr receive{1, nullptr, pieces, 2}, *bad = nullptr;
      REQUIRE(::ibv_post_recv(qp, &receive, &bad) == 0);
      REQUIRE(test::count(f.s.findings(), finding_kind::buffer_reused) == expected);
    }
    to.qp_state = IBV_QPS_RESET;  // discards what is posted
    REQUIRE(::ibv_modify_qp(qp, &to, IBV_QP_STATE) == 0);
  }
  CHECK(expected > 100);
  CHECK(::ibv_destroy_qp(qp) == 0);
  CHECK(::ibv_destroy_cq(cq) == 0);
  CHECK(::ibv_dereg_mr(mr) == 0);
  CHECK(test::count(f.finish(), finding_kind::buffer_reused) == expected);
}

TEST_CASE("a new receive lets the sender go on that waits for it, and no other") {
  shim::session s;
  {
    test::loopback one, other;
    REQUIRE(post_send(one.a.get(), 1) == 0);
    REQUIRE(post_send(one.a.get(), 2) == 0);
    REQUIRE(post_send(other.a.get(), 3) == 0);
    CHECK(completed(one.send_cq.get()).empty());
    REQUIRE(post_receive(one.b.get(), 0) == 0);
    CHECK(completed(one.send_cq.get()) == std::vector<std::uint64_t>{1});
    CHECK(completed(other.send_cq.get()).empty());
    REQUIRE(post_receive(one.b.get(), 0) == 0);
    REQUIRE(post_receive(other.b.get(), 0) == 0);
    CHECK(completed(one.send_cq.get()) == std::vector<std::uint64_t>{2});
    CHECK(completed(other.send_cq.get()) == std::vector<std::uint64_t>{3});
  }
  CHECK(s.finish().empty());
}

TEST_CASE("a peer that breaks by a request of its own ends the wait for its receive") {
  shim::session s;
  {
    test::loopback pair;
    REQUIRE(post_send(pair.a.get(), 1) == 0);
    ibv_sge unknown{reinterpret_cast<std::uintptr_t>(pair.memory), 16, 0x123456};
    ibv_send_wr wr{};
    wr.wr_id = 2;
    wr.sg_list = &unknown;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    REQUIRE(::ibv_post_send(pair.b.get(), &wr, &bad) == 0);
    ibv_wc wc[2];
    REQUIRE(::ibv_poll_cq(pair.send_cq.get(), 2, wc) == 2);
    CHECK(wc[0].wr_id == 2);
    CHECK(wc[1].wr_id == 1);
    CHECK(wc[1].status == IBV_WC_RETRY_EXC_ERR);
  }
  CHECK(s.finish().empty());
}

TEST_CASE(
    "a receive of an SRQ is the longest waiting sender's, and a broken peer fails only its own") {
  shim::session s;
  {
    test::loopback base;
    ibv_srq_init_attr wanted{nullptr, {16, 1, 0}};
    const unique_srq srq = or_throw(create_srq(base.pd, wanted));
    std::vector<std::pair<unique_qp, unique_qp>> pairs;
    for (std::uint64_t i = 0; i < 4; ++i) {
      ibv_qp_init_attr receiver{};
      receiver.send_cq = receiver.recv_cq = base.receive_cq.get();
      receiver.srq = srq.get();
      receiver.cap = {4, 0, 1, 0, 0};
      receiver.qp_type = IBV_QPT_RC;
      unique_qp from = test::make_rc_qp(base.pd, base.send_cq, base.send_cq);
      unique_qp to = or_throw(create_qp(base.pd, receiver));
      const qp_address a = test::address_of(from, 0), b = test::address_of(to, 0);
      test::connect(from, a, b);
      test::connect(to, b, a);
      REQUIRE(post_send(from.get(), i) == 0);
      pairs.emplace_back(std::move(from), std::move(to));
    }
    ibv_recv_wr receives[2] = {{10, &receives[1], nullptr, 0}, {11, nullptr, nullptr, 0}};
    ibv_recv_wr* bad = nullptr;
    REQUIRE(::ibv_post_srq_recv(srq.get(), receives, &bad) == 0);
    CHECK(completed(base.send_cq.get()) == std::vector<std::uint64_t>{0, 1});
    ibv_qp_attr broken{};
    broken.qp_state = IBV_QPS_ERR;
    REQUIRE(::ibv_modify_qp(pairs[2].second.get(), &broken, IBV_QP_STATE) == 0);
    ibv_wc wc;
    REQUIRE(::ibv_poll_cq(base.send_cq.get(), 1, &wc) == 1);
    CHECK(wc.wr_id == 2);
    CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
    CHECK(completed(base.send_cq.get()).empty());
    REQUIRE(::ibv_post_srq_recv(srq.get(), &receives[1], &bad) == 0);
    CHECK(completed(base.send_cq.get()) == std::vector<std::uint64_t>{3});
  }
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::shim_scale_test
