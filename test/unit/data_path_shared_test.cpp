// What queue pairs share: receive queues with their limit, memory windows of both types, and XRC.
#include <fcntl.h>

#include "suite.hpp"
#include "support/profiles.hpp"
#include "support/queue_pairs.hpp"
#include "support/trace.hpp"

namespace ibvxx::data_path_shared_test {
namespace {

using test::on_both_profiles;

using test::device_profile;
using test::drain;
using test::end_point;
using test::events_of;
using test::pair_options;
using test::polled;
using test::queue_pairs;
using test::receive;
using test::request;

constexpr unsigned window_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

int send(queue_pairs& pair, std::uint64_t id, std::size_t length) {
  return request(id, IBV_WR_SEND, {pair.a.piece(0, length)}).post(pair.a.qp);
}

int write(queue_pairs& pair, std::uint64_t id, std::uint64_t address, std::uint32_t rkey,
          std::size_t length = 8) {
  return request(id, IBV_WR_RDMA_WRITE, {pair.a.piece(0, length)})
      .to(address, rkey)
      .post(pair.a.qp);
}

/// A window of b's memory at [1024, 2048).
ibv_mw_bind_info window_of(const queue_pairs& pair, unsigned access = window_access) {
  return {pair.b.region.get(), pair.b.at(1024), 1024, access};
}

/// Binds a window of type 2 by a work request of b.
int bind(queue_pairs& pair, std::uint64_t id, ibv_mw* mw, std::uint32_t rkey,
         const ibv_mw_bind_info& info) {
  request one(id, IBV_WR_BIND_MW, {});
  one.wr.bind_mw.mw = mw;
  one.wr.bind_mw.rkey = rkey;
  one.wr.bind_mw.bind_info = info;
  return one.post(pair.b.qp);
}

}  // namespace

TEST_CASE("the receives of an SRQ serve all of its queue pairs, in the order they were posted") {
  on_both_profiles([](shim::session&, device_profile) {
    const pair_options options{.with_srq = true};
    queue_pairs pair(options);
    end_point c("sim0", options);
    const auto second = pair.b.make_qp(options);
    test::connect(second, pair.b.address_of(second), c.address, options);
    c.connect_to(pair.b.address_of(second), options);
    for (std::uint64_t id = 1; id <= 3; ++id)
      CHECK(receive(pair.b.srq, id, {pair.b.piece(id * 64, 64)}) == 0);
    CHECK(send(pair, 21, 10) == 0);
    CHECK(request(22, IBV_WR_SEND, {c.piece(0, 20)}).post(c.qp) == 0);
    CHECK(send(pair, 23, 30) == 0);
    const auto received = drain(pair.b.recv_cq);
    REQUIRE(received.size() == 3);
    CHECK(test::told(received[0]) == "1 SUCCESS RECV 10");
    CHECK(test::told(received[1]) == "2 SUCCESS RECV 20");
    CHECK(test::told(received[2]) == "3 SUCCESS RECV 30");
    CHECK(received[0].qp_num == pair.b.qp->qp_num);
    CHECK(received[1].qp_num == second->qp_num);
    CHECK(received[2].qp_num == pair.b.qp->qp_num);
    CHECK(receive(pair.b.qp, 4, {}) == EINVAL);  // it has no receive queue of its own
  });
}

TEST_CASE("a sender waits for a receive of the SRQ, and gets it when one is posted") {
  on_both_profiles([](shim::session&, device_profile) {
    queue_pairs pair({.with_srq = true});
    CHECK(send(pair, 1, 8) == 0);
    CHECK(polled(pair.a.send_cq) == "");
    CHECK(receive(pair.b.srq, 2, {pair.b.piece(0, 64)}) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS SEND");
    CHECK(polled(pair.b.recv_cq) == "2 SUCCESS RECV 8");
  });
}

TEST_CASE("an SRQ raises one event when fewer receives are left than its limit") {
  on_both_profiles([](shim::session&, device_profile) {
    queue_pairs pair({.with_srq = true});
    for (std::uint64_t id = 1; id <= 5; ++id)
      CHECK(receive(pair.b.srq, id, {pair.b.piece(0, 64)}) == 0);
    ibv_srq_attr limit{0, 0, 3};
    or_throw(modify_srq(pair.b.srq, limit, IBV_SRQ_LIMIT));
    CHECK(send(pair, 1, 8) == 0);
    CHECK(send(pair, 2, 8) == 0);
    CHECK(events_of(pair.b.context) == "");  // three are left
    CHECK(send(pair, 3, 8) == 0);
    CHECK(events_of(pair.b.context) == "SRQ_LIMIT_REACHED");
    CHECK(or_throw(query_srq(pair.b.srq)).srq_limit == 0);  // disarmed
    CHECK(send(pair, 4, 8) == 0);
    CHECK(events_of(pair.b.context) == "");
    CHECK(drain(pair.b.recv_cq).size() == 4);
  });
}

TEST_CASE(
    "an SRQ keeps its receives when a queue pair breaks; hardware raises QP_LAST_WQE_REACHED") {
  on_both_profiles([](shim::session&, device_profile profile) {
    queue_pairs pair({.with_srq = true});
    CHECK(receive(pair.b.srq, 1, {pair.b.piece(0, 64)}) == 0);
    or_throw(qp_to_error(pair.b.qp));
    CHECK(polled(pair.b.recv_cq) == "");
    CHECK(events_of(pair.b.context) ==
          (profile == device_profile::hardware ? "QP_LAST_WQE_REACHED" : ""));
    or_throw(qp_to_reset(pair.b.qp));
    pair.b.connect_to(pair.a.address, {});
    CHECK(send(pair, 2, 8) == 0);
    CHECK(polled(pair.b.recv_cq) == "1 SUCCESS RECV 8");
  });
}

TEST_CASE(
    "a type 1 window grants access through every queue pair of its domain, and can be rebound") {
  on_both_profiles([](shim::session&, device_profile) {
    // The region itself grants the peer nothing.
    queue_pairs pair({.region_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND});
    const auto window = or_throw(alloc_mw(pair.b.pd, IBV_MW_TYPE_1));
    const std::uint32_t unbound = window->rkey;
    or_throw(bind_mw(pair.b.qp, window, {1, IBV_SEND_SIGNALED, window_of(pair)}));
    CHECK(polled(pair.b.send_cq) == "1 SUCCESS BIND_MW");
    CHECK(window->rkey != unbound);
    pair.a.fill(0, "windowed");
    CHECK(write(pair, 2, pair.b.at(1024), window->rkey) == 0);
    CHECK(write(pair, 3, pair.b.at(2040), window->rkey) == 0);
    CHECK(polled(pair.a.send_cq) == "2 SUCCESS RDMA_WRITE; 3 SUCCESS RDMA_WRITE");
    CHECK(pair.b.text(2040, 8) == "windowed");
    // Bound anew, somewhere else and for reading only: the old key is dead.
    const std::uint32_t old = window->rkey;
    or_throw(bind_mw(pair.b.qp, window,
                     {4,
                      IBV_SEND_SIGNALED,
                      {pair.b.region.get(), pair.b.at(2048), 64, IBV_ACCESS_REMOTE_READ}}));
    CHECK(polled(pair.b.send_cq) == "4 SUCCESS BIND_MW");
    CHECK(request(5, IBV_WR_RDMA_READ, {pair.a.piece(64, 8)})
              .to(pair.b.at(2048), window->rkey)
              .post(pair.a.qp) == 0);
    CHECK(polled(pair.a.send_cq) == "5 SUCCESS RDMA_READ 8");
    CHECK(write(pair, 6, pair.b.at(1024), old) == 0);
    CHECK(polled(pair.a.send_cq) == "6 REM_ACCESS_ERR");
  });
}

TEST_CASE("a window grants its own range only, with the access that it was bound with") {
  on_both_profiles([](shim::session&, device_profile) {
    const struct {
      std::uint64_t offset;
      std::size_t length;
      unsigned access;
    } refused[] = {{1023, 1, window_access},
                   {2048, 1, window_access},
                   {2047, 2, window_access},
                   {1024, 8, IBV_ACCESS_REMOTE_READ}};
    for (const auto& use : refused) {
      queue_pairs pair;
      const auto window = or_throw(alloc_mw(pair.b.pd, IBV_MW_TYPE_2));
      const std::uint32_t key = ibv_inc_rkey(window->rkey);
      CHECK(bind(pair, 1, window.get(), key, window_of(pair, use.access)) == 0);
      CHECK(polled(pair.b.send_cq) == "1 SUCCESS BIND_MW");
      CHECK(write(pair, 2, pair.b.at(use.offset), key, use.length) == 0);
      CHECK(polled(pair.a.send_cq) == "2 REM_ACCESS_ERR");
    }
  });
}

TEST_CASE("a type 2 window belongs to the queue pair that bound it, until it is invalidated") {
  on_both_profiles([](shim::session&, device_profile) {
    queue_pairs pair;
    const auto window = or_throw(alloc_mw(pair.b.pd, IBV_MW_TYPE_2));
    const std::uint32_t key = ibv_inc_rkey(window->rkey);
    CHECK(bind(pair, 1, window.get(), key, window_of(pair)) == 0);
    CHECK(write(pair, 2, pair.b.at(1024), key) == 0);
    CHECK(polled(pair.a.send_cq) == "2 SUCCESS RDMA_WRITE");
    // Of another queue pair of the same domain it is no use.
    const pair_options options;
    end_point c("sim0", options);
    const auto other = pair.b.make_qp(options);
    test::connect(other, pair.b.address_of(other), c.address, options);
    c.connect_to(pair.b.address_of(other), options);
    CHECK(request(3, IBV_WR_RDMA_WRITE, {c.piece(0, 8)}).to(pair.b.at(1024), key).post(c.qp) == 0);
    CHECK(polled(c.send_cq) == "3 REM_ACCESS_ERR");
    CHECK(request(4, IBV_WR_LOCAL_INV, {}).invalidates(key).post(pair.b.qp) == 0);
    CHECK(polled(pair.b.send_cq) == "1 SUCCESS BIND_MW; 4 SUCCESS LOCAL_INV");
    CHECK(write(pair, 5, pair.b.at(1024), key) == 0);
    CHECK(polled(pair.a.send_cq) == "5 REM_ACCESS_ERR");
  });
}

TEST_CASE(
    "a send with invalidate invalidates the receiver's window, and its completion has the key") {
  on_both_profiles([](shim::session&, device_profile) {
    queue_pairs pair;
    const auto window = or_throw(alloc_mw(pair.b.pd, IBV_MW_TYPE_2));
    const std::uint32_t key = ibv_inc_rkey(window->rkey);
    CHECK(bind(pair, 1, window.get(), key, window_of(pair)) == 0);
    CHECK(receive(pair.b.qp, 2, {pair.b.piece(0, 64)}) == 0);
    CHECK(request(3, IBV_WR_SEND_WITH_INV, {pair.a.piece(0, 8)}).invalidates(key).post(pair.a.qp) ==
          0);
    CHECK(polled(pair.a.send_cq) == "3 SUCCESS SEND");
    const auto received = drain(pair.b.recv_cq);
    REQUIRE(received.size() == 1);
    CHECK(test::told(received[0]) == "2 SUCCESS RECV 8");
    CHECK((received[0].wc_flags & IBV_WC_WITH_INV) != 0);
    CHECK(received[0].invalidated_rkey == key);
    CHECK(write(pair, 4, pair.b.at(1024), key) == 0);
    CHECK(polled(pair.a.send_cq) == "4 REM_ACCESS_ERR");
  });
}

TEST_CASE("invalid binds complete with MW_BIND_ERR, and the queue pair breaks") {
  on_both_profiles([](shim::session&, device_profile) {
    const auto refuse = [](auto&& change) {
      queue_pairs pair;
      const auto plain = or_throw(
          reg_mr(pair.b.pd, pair.b.memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
      const auto constant = or_throw(reg_mr(pair.b.pd, pair.b.memory, 4096, IBV_ACCESS_MW_BIND));
      const auto window = or_throw(alloc_mw(pair.b.pd, IBV_MW_TYPE_2));
      auto info = window_of(pair);
      change(info, plain.get(), constant.get());
      CHECK(bind(pair, 1, window.get(), ibv_inc_rkey(window->rkey), info) == 0);
      CHECK(polled(pair.b.send_cq) == "1 MW_BIND_ERR");
      CHECK(pair.b.state() == IBV_QPS_ERR);
    };
    refuse([](ibv_mw_bind_info& info, ibv_mr*, ibv_mr*) { info.length = 1 << 20; });
    refuse([](ibv_mw_bind_info& info, ibv_mr*, ibv_mr*) { info.addr -= 4096; });
    refuse([](ibv_mw_bind_info& info, ibv_mr* plain, ibv_mr*) { info.mr = plain; });
    refuse([](ibv_mw_bind_info& info, ibv_mr*, ibv_mr* constant) { info.mr = constant; });
  });
}

TEST_CASE("a region with a bound window is not deregistered, and the attempt is a finding") {
  shim::session s;
  {
    queue_pairs pair;
    auto window = or_throw(alloc_mw(pair.b.pd, IBV_MW_TYPE_1));
    or_throw(bind_mw(pair.b.qp, window, {1, IBV_SEND_SIGNALED, window_of(pair)}));
    CHECK(pair.b.region.reset().error().code() == EINVAL);
    CHECK(write(pair, 2, pair.b.at(1024), window->rkey) == 0);
    CHECK(polled(pair.a.send_cq) == "2 SUCCESS RDMA_WRITE");
    const std::uint32_t key = window->rkey;
    or_throw(window.reset());
    CHECK(write(pair, 3, pair.b.at(1024), key) == 0);
    CHECK(polled(pair.a.send_cq) == "3 REM_ACCESS_ERR");
    CHECK(pair.b.region.reset());
  }
  const auto findings = s.finish();
  CHECK(findings.size() == 1);
  CHECK(test::count(findings, shim::finding_kind::destroyed_in_use) == 1);
}

TEST_CASE(
    "XRC: a sender names the SRQ, whose CQ gets the completion; SRQs of other domains are out of "
    "reach") {
  shim::session s({{shim::device_description::hardware()}});
  {
    pair_options options;
    end_point a("sim0", options), b("sim0", options);
    const auto domain = or_throw(
        open_xrcd(b.context, {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT}));
    const auto make_srq = [&] {
      ibv_srq_init_attr_ex wanted{};
      wanted.attr = {16, 1, 0};
      wanted.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                         IBV_SRQ_INIT_ATTR_CQ;
      wanted.srq_type = IBV_SRQT_XRC;
      wanted.pd = b.pd.get();
      wanted.xrcd = domain.get();
      wanted.cq = b.recv_cq.get();
      return or_throw(create_srq_ex(b.context, wanted));
    };
    const auto first = make_srq(), second = make_srq();
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type = IBV_QPT_XRC_RECV;
    wanted.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    wanted.xrcd = domain.get();
    const auto receiver = or_throw(create_qp_ex(b.context, wanted));
    wanted = {};
    wanted.qp_type = IBV_QPT_XRC_SEND;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    wanted.pd = a.pd.get();
    wanted.send_cq = a.send_cq.get();
    wanted.cap = {16, 0, 1, 0, 0};
    const auto sender = or_throw(create_qp_ex(a.context, wanted));
    test::connect(receiver, b.address_of(receiver), a.address_of(sender), options);
    test::connect(sender, a.address_of(sender), b.address_of(receiver), options);

    CHECK(receive(first, 1, {b.piece(0, 64)}) == 0);
    CHECK(receive(second, 2, {b.piece(64, 64)}) == 0);
    const auto send_to = [&](std::uint64_t id, std::uint32_t number) {
      request one(id, IBV_WR_SEND, {a.piece(0, 8)});
      one.wr.qp_type.xrc.remote_srqn = number;
      return one.post(sender);
    };
    a.fill(0, "by name.");
    CHECK(send_to(3, or_throw(get_srq_num(second))) == 0);
    CHECK(polled(a.send_cq) == "3 SUCCESS SEND");
    CHECK(polled(b.recv_cq) == "2 SUCCESS RECV 8");
    CHECK(b.text(64, 8) == "by name.");
    CHECK(send_to(4, or_throw(get_srq_num(first))) == 0);
    CHECK(polled(b.recv_cq) == "1 SUCCESS RECV 8");
    // Writes and reads go to the region's domain, whichever that is.
    CHECK(request(5, IBV_WR_RDMA_WRITE, {a.piece(0, 8)}).to(b, 128).post(sender) == 0);
    CHECK(polled(a.send_cq) == "4 SUCCESS SEND; 5 SUCCESS RDMA_WRITE");
    CHECK(b.text(128, 8) == "by name.");
  }
  CHECK(test::lines(s.finish()) == "");
}

}  // namespace ibvxx::data_path_shared_test
