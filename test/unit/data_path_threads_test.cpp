// Two threads and more on one device: posting, polling, and sharing a queue.
#include "suite.hpp"
#include "support/queue_pairs.hpp"
#include "support/trace.hpp"

namespace ibvxx::data_path_threads_test {
namespace {

using test::end_point;
using test::pair_options;
using test::queue_pairs;
using test::receive;
using test::request;

constexpr std::uint64_t messages = 2000;

/// Posts receives and polls, until all messages have arrived. Returns how many came in
/// order and whole.
std::uint64_t take_all(end_point& to) {
  std::uint64_t posted = 0, right = 0, taken = 0;
  for (; posted < 8; ++posted)
    if (receive(to.qp, posted, {to.piece(posted % 8 * 8, 8)}) != 0) return 0;
  while (taken < messages) {
    ibv_wc wc{};
    const auto polled = poll_cq(to.recv_cq, std::span(&wc, 1));
    if (!polled) return right;
    if (*polled == 0) {
      std::this_thread::yield();
      continue;
    }
    if (wc.status != IBV_WC_SUCCESS) return right;
    if (wc.wr_id == taken && to.word(taken % 8 * 8) == taken) ++right;
    ++taken;
    if (posted < messages && receive(to.qp, posted, {to.piece(posted % 8 * 8, 8)}) == 0) ++posted;
  }
  return right;
}

/// Sends them, a few under way at a time. Returns how many completed well.
std::uint64_t send_all(end_point& from) {
  std::uint64_t posted = 0, done = 0;
  while (done < messages) {
    if (posted < messages && posted - done < 4) {
      from.set_word(2048 + posted % 4 * 8, posted);
      if (request(posted, IBV_WR_SEND, {from.piece(2048 + posted % 4 * 8, 8)}).post(from.qp) == 0)
        ++posted;
    }
    ibv_wc wc{};
    const auto polled = poll_cq(from.send_cq, std::span(&wc, 1));
    if (!polled || (*polled == 1 && wc.status != IBV_WC_SUCCESS)) return done;
    done += *polled;
    if (*polled == 0) std::this_thread::yield();
  }
  return done;
}

}  // namespace

TEST_CASE("one thread sends while another receives: every message arrives once and in order") {
  shim::session s;
  {
    queue_pairs pair;
    std::uint64_t received = 0;
    std::thread other([&] { received = take_all(pair.b); });
    CHECK(send_all(pair.a) == messages);
    other.join();
    CHECK(received == messages);
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("both directions at once, with two threads at each end") {
  shim::session s(test::two_devices());
  {
    queue_pairs pair({.device_b = "sim1"});
    std::uint64_t results[3] = {};
    std::thread threads[] = {std::thread([&] { results[0] = take_all(pair.a); }),
                             std::thread([&] { results[1] = take_all(pair.b); }),
                             std::thread([&] { results[2] = send_all(pair.b); })};
    CHECK(send_all(pair.a) == messages);
    for (auto& one : threads) one.join();
    for (const std::uint64_t result : results) CHECK(result == messages);
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("atomics of two threads on one word lose no addition") {
  shim::session s;
  {
    queue_pairs first;
    const pair_options options;
    end_point c("sim0", options);
    const auto second = first.b.make_qp(options);
    test::connect(second, first.b.address_of(second), c.address, options);
    c.connect_to(first.b.address_of(second), options);
    const auto add = [&first](end_point& from) {
      ibv_wc wc{};
      for (std::uint64_t i = 0; i < messages; ++i) {
        static_cast<void>(request(i, IBV_WR_ATOMIC_FETCH_AND_ADD, {from.piece(0, 8)})
                              .atomic(first.b, 0, 1)
                              .post(from.qp));
        while (poll_cq(from.send_cq, std::span(&wc, 1)).value_or(1) == 0) std::this_thread::yield();
      }
    };
    std::thread other([&] { add(c); });
    add(first.a);
    other.join();
    CHECK(first.b.word(0) == 2 * messages);
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("two threads poll one queue: every completion is taken by one of them") {
  shim::session s;
  {
    queue_pairs pair({.cqe = 255});
    std::atomic<bool> finished{false};
    std::vector<std::uint64_t> taken[2];
    const auto poll = [&](std::vector<std::uint64_t>& mine) {
      ibv_wc some[4];
      for (;;) {
        const bool last = finished;
        const auto count = poll_cq(pair.a.send_cq, some).value_or(0);
        for (std::size_t i = 0; i < count; ++i) mine.push_back(some[i].wr_id);
        if (count == 0 && last) return;
        if (count == 0) std::this_thread::yield();
      }
    };
    std::thread pollers[] = {std::thread([&] { poll(taken[0]); }),
                             std::thread([&] { poll(taken[1]); })};
    std::size_t posted = 0;
    for (; posted < 200; ++posted)  // no more than the queue holds
      if (request(posted, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 8)}).to(pair.b, 0).post(pair.a.qp))
        break;
    finished = true;
    for (auto& one : pollers) one.join();
    CHECK(posted == 200);
    std::set<std::uint64_t> all(taken[0].begin(), taken[0].end());
    all.insert(taken[1].begin(), taken[1].end());
    CHECK(taken[0].size() + taken[1].size() == posted);
    CHECK(all.size() == posted);
    CHECK(std::is_sorted(taken[0].begin(), taken[0].end()));
    CHECK(std::is_sorted(taken[1].begin(), taken[1].end()));
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("two threads build batches on one queue pair: they take turns") {
  shim::session s;
  {
    const pair_options options;
    end_point a("sim0", options), b("sim0", options);
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = a.send_cq.get();
    wanted.cap = options.cap;
    wanted.qp_type = IBV_QPT_RC;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.pd = a.pd.get();
    wanted.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
    const auto qp = or_throw(create_qp_ex(a.context, wanted));
    test::connect(qp, a.address_of(qp), b.address, options);
    b.connect_to(a.address_of(qp), options);
    ibv_qp_ex* const ex = qp_to_qp_ex(qp);
    std::atomic<int> wrong{0};
    const auto write = [&](std::uint64_t id) {
      for (int i = 0; i < 500; ++i) {
        wr_start(ex);
        for (int twice = 0; twice < 2; ++twice) {
          ex->wr_id = id;
          ex->wr_flags = IBV_SEND_SIGNALED;
          ::ibv_wr_rdma_write(ex, b.region->rkey, b.at(id * 8));
          ::ibv_wr_set_sge(ex, a.region->lkey, a.at(id * 8), 8);
        }
        if (!wr_complete(ex)) ++wrong;
        ibv_wc two[2];
        for (std::size_t taken = 0; taken < 2;)
          taken += poll_cq(a.send_cq, std::span(two).first(2 - taken)).value_or(2);
      }
    };
    a.set_word(8, 11);
    a.set_word(16, 22);
    std::thread other([&] { write(1); });
    write(2);
    other.join();
    CHECK(wrong == 0);
    CHECK(b.word(8) == 11);
    CHECK(b.word(16) == 22);
    CHECK(test::drain(a.send_cq).empty());
  }
  CHECK(test::lines(s.finish()) == "");
}

}  // namespace ibvxx::data_path_threads_test
