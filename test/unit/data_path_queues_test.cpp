// Queues: how much they hold, what happens when they run over, and how their events wake a program.
#include <sys/epoll.h>

#include "suite.hpp"
#include "support/profiles.hpp"
#include "support/queue_pairs.hpp"
#include "support/trace.hpp"

namespace ibvxx::data_path_queues_test {
namespace {

using test::on_both_profiles;

using test::device_profile;
using test::drain;
using test::events_of;
using test::polled;
using test::queue_pairs;
using test::receive;
using test::request;

int write(queue_pairs& pair, std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
  return request(id, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 8)})
      .to(pair.b, 0)
      .flags(flags)
      .post(pair.a.qp);
}

int send(queue_pairs& pair, std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
  return request(id, IBV_WR_SEND, {pair.a.piece(0, 8)}).flags(flags).post(pair.a.qp);
}

}  // namespace

TEST_CASE("queues hold 2^n-1 entries, at least what was asked for") {
  shim::session s;
  {
    const auto context = or_throw(open_device((*get_device_list())[0]));
    const std::pair<int, int> sizes[] = {{1, 1},   {2, 3},     {3, 3},     {4, 7},
                                         {7, 7},   {8, 15},    {16, 31},   {31, 31},
                                         {32, 63}, {100, 127}, {255, 255}, {256, 511}};
    for (const auto& [asked, given] : sizes)
      CHECK(or_throw(create_cq(context, asked))->cqe == given);
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("a receive queue accepts as many receives as it holds, then ENOMEM with bad_wr") {
  on_both_profiles([](shim::session&, device_profile) {
    queue_pairs pair({.cap = {16, 16, 4, 4, 64}, .cqe = 127});
    ibv_recv_wr list[40] = {};
    for (std::uint64_t i = 0; i < 40; ++i)
      list[i] = {i, i < 39 ? &list[i + 1] : nullptr, nullptr, 0};
    ibv_recv_wr* bad = nullptr;
    const auto posted = post_recv(pair.b.qp, list, &bad);
    REQUIRE(!posted);
    CHECK(posted.error().code() == ENOMEM);
    CHECK(bad == &list[31]);
    for (std::uint64_t i = 0; i < 31; ++i) CHECK(send(pair, i, 0) == 0);
    CHECK(drain(pair.b.recv_cq).size() == 31);
    CHECK(receive(pair.b.qp, 99, {}) == 0);
  });
}

TEST_CASE("a send queue stays full until its requests complete; those already posted stay") {
  on_both_profiles([](shim::session&, device_profile) {
    queue_pairs pair({.cap = {4, 16, 4, 4, 64}});
    // No receive is posted: they wait.
    for (std::uint64_t id = 1; id <= 7; ++id) CHECK(send(pair, id) == 0);
    CHECK(send(pair, 8) == ENOMEM);
    for (std::uint64_t id = 1; id <= 7; ++id)
      CHECK(receive(pair.b.qp, id, {pair.b.piece(0, 8)}) == 0);
    CHECK(drain(pair.a.send_cq).size() == 7);
    CHECK(send(pair, 9) == 0);
  });
}

TEST_CASE("send slots are free on hardware after a polled completion, on Soft-RoCE at once") {
  on_both_profiles([](shim::session&, device_profile profile) {
    queue_pairs pair({.cap = {4, 16, 4, 4, 64}});
    int posted = 0;
    while (posted < 100 && write(pair, 1, 0) == 0) ++posted;
    CHECK(posted == (profile == device_profile::hardware ? 7 : 100));
    or_throw(qp_to_reset(pair.a.qp));
    pair.a.connect_to(pair.b.address, {});
    or_throw(qp_to_reset(pair.b.qp));
    pair.b.connect_to(pair.a.address, {});
    for (std::uint64_t id = 1; id <= 6; ++id) CHECK(write(pair, id, 0) == 0);
    CHECK(write(pair, 7) == 0);
    CHECK(write(pair, 8) == (profile == device_profile::hardware ? ENOMEM : 0));
    CHECK(drain(pair.a.send_cq).size() >= 1);
    for (std::uint64_t id = 1; id <= 7; ++id) CHECK(write(pair, id, 0) == 0);
  });
}

TEST_CASE("more SGEs than a queue pair has are refused, and bad_wr points at the request") {
  on_both_profiles([](shim::session&, device_profile) {
    queue_pairs pair;
    const auto caps = or_throw(query_qp(pair.a.qp, IBV_QP_CAP)).init_attr.cap;
    std::vector<ibv_sge> pieces(caps.max_send_sge + 1, pair.a.piece(0, 1));
    ibv_send_wr list[3] = {};
    for (std::uint64_t i = 0; i < 3; ++i) {
      list[i].wr_id = i;
      list[i].next = i < 2 ? &list[i + 1] : nullptr;
      list[i].sg_list = pieces.data();
      list[i].num_sge = static_cast<int>(pieces.size()) - (i == 1 ? 0 : 1);
      list[i].opcode = IBV_WR_RDMA_WRITE;
      list[i].send_flags = IBV_SEND_SIGNALED;
      list[i].wr.rdma.remote_addr = pair.b.at();
      list[i].wr.rdma.rkey = pair.b.region->rkey;
    }
    ibv_send_wr* bad = nullptr;
    const auto posted = post_send(pair.a.qp, list, &bad);
    REQUIRE(!posted);
    CHECK(posted.error().code() == EINVAL);
    CHECK(bad == &list[1]);
    CHECK(polled(pair.a.send_cq) == "0 SUCCESS RDMA_WRITE");  // and the third is not posted
    CHECK(receive(pair.a.qp, 1, std::vector<ibv_sge>(caps.max_recv_sge + 1)) == EINVAL);
  });
}

TEST_CASE("a CQ that overruns loses the completion and raises CQ_ERR; the others can be polled") {
  on_both_profiles([](shim::session& s, device_profile) {
    s.expect(shim::finding_kind::undersized_cq);
    queue_pairs pair({.cqe = 3});
    for (std::uint64_t id = 1; id <= 3; ++id) CHECK(write(pair, id) == 0);
    CHECK(events_of(pair.a.context) == "");
    CHECK(write(pair, 4) == 0);
    CHECK(events_of(pair.a.context) == "CQ_ERR");
    CHECK(polled(pair.a.send_cq) ==
          "1 SUCCESS RDMA_WRITE; 2 SUCCESS RDMA_WRITE; 3 SUCCESS RDMA_WRITE");
    CHECK(polled(pair.a.send_cq) == "");
    CHECK(write(pair, 5) == 0);  // the queue pair stays in RTS (measured)
    CHECK(polled(pair.a.send_cq) == "5 SUCCESS RDMA_WRITE");
  });
}

TEST_CASE("a responder whose completion is lost breaks, without an answer") {
  on_both_profiles([](shim::session& s, device_profile) {
    s.expect(shim::finding_kind::undersized_cq);
    queue_pairs pair({.cqe = 1});
    for (std::uint64_t id = 1; id <= 3; ++id)
      CHECK(receive(pair.b.qp, id, {pair.b.piece(0, 64)}) == 0);
    CHECK(send(pair, 1) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS SEND");
    CHECK(send(pair, 2) == 0);
    CHECK(polled(pair.a.send_cq) == "2 RETRY_EXC_ERR");
    CHECK(pair.b.state() == IBV_QPS_ERR);
    CHECK(events_of(pair.b.context).find("CQ_ERR") == 0);
    CHECK(polled(pair.b.recv_cq) == "1 SUCCESS RECV 8");
  });
}

TEST_CASE("a resized CQ keeps what it holds, in order, and cannot become smaller than that") {
  shim::session s;
  {
    queue_pairs pair({.cqe = 7});
    for (std::uint64_t id = 1; id <= 5; ++id) CHECK(write(pair, id) == 0);
    CHECK(resize_cq(pair.a.send_cq, 3).error().code() == EINVAL);
    or_throw(resize_cq(pair.a.send_cq, 20));
    CHECK(pair.a.send_cq->cqe == 31);
    for (std::uint64_t id = 6; id <= 20; ++id) CHECK(write(pair, id) == 0);
    const auto all = drain(pair.a.send_cq);
    REQUIRE(all.size() == 20);
    for (std::uint64_t i = 0; i < 20; ++i) CHECK(all[i].wr_id == i + 1);
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("a provider's -1 for a resize is not EPERM: the error is errno, or unspecified") {
  shim::session s;
  {
    const auto context = or_throw(open_device((*get_device_list())[0]));
    const auto cq = or_throw(create_cq(context, 7));
    const auto resize = [&] {
      s.fail(verb::resize_cq).negated().with(1);  // EPERM's number
      errno = EINPROGRESS;
      return resize_cq(cq, 15).error();
    };
    CHECK(resize().unspecified());
    s.at(verb::resize_cq).run([] { errno = ENOMEM; });
    CHECK(resize().message() ==
          "ibv_resize_cq on sim0: Cannot allocate memory (ENOMEM): from cqe 7 to 15");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("an armed CQ raises one event, which wakes poll and epoll; an unarmed one none") {
  on_both_profiles([](shim::session&, device_profile) {
    queue_pairs pair;
    const auto epoll = or_throw(epoll_create());
    or_throw(epoll_add(epoll.get(), pair.a.channel->fd, EPOLLIN, 42));
    epoll_event event{};
    CHECK(write(pair, 1) == 0);
    CHECK_FALSE(test::readable(pair.a.channel->fd));
    or_throw(req_notify_cq(pair.a.send_cq));
    CHECK_FALSE(test::readable(pair.a.channel->fd));  // completions in the queue raise none
    CHECK(write(pair, 2) == 0);
    CHECK(write(pair, 3) == 0);
    CHECK(test::readable(pair.a.channel->fd));
    CHECK(::epoll_wait(epoll.get(), &event, 1, 0) == 1);
    CHECK(std::uint64_t{event.data.u64} == 42);
    auto read = or_throw(get_cq_event(pair.a.channel));
    REQUIRE(read);
    CHECK(read->cq() == pair.a.send_cq.get());
    CHECK_FALSE(or_throw(get_cq_event(pair.a.channel)));
    CHECK_FALSE(test::readable(pair.a.channel->fd));
    CHECK(::epoll_wait(epoll.get(), &event, 1, 0) == 0);
    CHECK(drain(pair.a.send_cq).size() == 3);
  });
}

TEST_CASE("another thread's completion wakes a thread that sleeps in poll") {
  shim::session s;
  {
    queue_pairs pair;
    or_throw(req_notify_cq(pair.b.recv_cq));
    CHECK(receive(pair.b.qp, 1, {pair.b.piece(0, 64)}) == 0);
    std::thread sender([&] {
      // Long enough that the other one mostly sleeps already; the outcome does not depend on it.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      static_cast<void>(send(pair, 2));
    });
    const bool woken = test::readable(pair.b.channel->fd, 10000);
    sender.join();
    CHECK(woken);
    CHECK(or_throw(get_cq_event(pair.b.channel)));
    CHECK(polled(pair.b.recv_cq) == "1 SUCCESS RECV 8");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("solicited only: an event for a solicited message, and on hardware for an error") {
  on_both_profiles([](shim::session&, device_profile profile) {
    queue_pairs pair;
    const auto raised = [&] { return or_throw(get_cq_event(pair.b.channel)).has_value(); };
    for (std::uint64_t id = 1; id <= 5; ++id)
      CHECK(receive(pair.b.qp, id, {pair.b.piece(0, 8)}) == 0);
    or_throw(req_notify_cq(pair.b.recv_cq, true));
    CHECK(send(pair, 1) == 0);
    CHECK_FALSE(raised());
    CHECK(send(pair, 2, IBV_SEND_SOLICITED) == 0);
    CHECK(raised());
    CHECK(send(pair, 3, IBV_SEND_SOLICITED) == 0);
    CHECK_FALSE(raised());  // one-shot
    // Asking for every completion is not undone by asking for solicited ones.
    or_throw(req_notify_cq(pair.b.recv_cq, false));
    or_throw(req_notify_cq(pair.b.recv_cq, true));
    CHECK(send(pair, 4) == 0);
    CHECK(raised());
    or_throw(req_notify_cq(pair.b.recv_cq, true));
    CHECK(request(5, IBV_WR_SEND, {pair.a.piece(0, 9)}).post(pair.a.qp) == 0);  // too long
    // IBA 11.4.2.2 counts errors among what is solicited; Soft-RoCE does not (measured).
    CHECK(raised() == (profile == device_profile::hardware));
    CHECK(drain(pair.b.recv_cq).size() == 5);
  });
}

TEST_CASE("SQD holds requests back, and raises an event when the queue is drained") {
  on_both_profiles([](shim::session&, device_profile profile) {
    const bool hardware = profile == device_profile::hardware;
    queue_pairs pair;
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_SQD;
    to.en_sqd_async_notify = 1;
    or_throw(modify_qp(pair.a.qp, to, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    CHECK(events_of(pair.a.context) == "SQ_DRAINED");
    CHECK(write(pair, 1) == 0);
    CHECK(polled(pair.a.send_cq) == "");
    to.qp_state = IBV_QPS_RTS;
    or_throw(modify_qp(pair.a.qp, to, IBV_QP_STATE));
    // Soft-RoCE begins nothing before the next request is posted (measured).
    CHECK(polled(pair.a.send_cq) == (hardware ? "1 SUCCESS RDMA_WRITE" : ""));
    CHECK(write(pair, 2) == 0);
    CHECK(polled(pair.a.send_cq) ==
          std::string(hardware ? "" : "1 SUCCESS RDMA_WRITE; ") + "2 SUCCESS RDMA_WRITE");
    to.qp_state = IBV_QPS_SQD;
    to.en_sqd_async_notify = 0;
    or_throw(modify_qp(pair.a.qp, to, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    // Soft-RoCE raises the event whether or not it was requested (measured).
    CHECK(events_of(pair.a.context) == (hardware ? "" : "SQ_DRAINED"));
  });
}

TEST_CASE("on hardware a request that has begun ends in SQD, and then the queue is drained") {
  shim::session s(test::two_devices(device_profile::hardware));
  {
    queue_pairs pair;
    CHECK(send(pair, 1) == 0);  // waits for a receive
    CHECK(send(pair, 2) == 0);
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_SQD;
    to.en_sqd_async_notify = 1;
    or_throw(modify_qp(pair.a.qp, to, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    CHECK(events_of(pair.a.context) == "");
    CHECK(or_throw(query_qp(pair.a.qp, IBV_QP_STATE)).attr.sq_draining == 1);
    for (std::uint64_t id = 1; id <= 2; ++id)
      CHECK(receive(pair.b.qp, id, {pair.b.piece(0, 8)}) == 0);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS SEND");
    CHECK(events_of(pair.a.context) == "SQ_DRAINED");
    CHECK(or_throw(query_qp(pair.a.qp, IBV_QP_STATE)).attr.sq_draining == 0);
    to.qp_state = IBV_QPS_RTS;
    or_throw(modify_qp(pair.a.qp, to, IBV_QP_STATE));
    CHECK(polled(pair.a.send_cq) == "2 SUCCESS SEND");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("a queue pair's async event that was read blocks its destroy until it is acknowledged") {
  shim::session s;
  {
    queue_pairs pair;
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_SQD;
    or_throw(modify_qp(pair.a.qp, to, IBV_QP_STATE));
    ibv_async_event read{};
    REQUIRE(::ibv_get_async_event(pair.a.context.get(), &read) == 0);
    CHECK(read.element.qp == pair.a.qp.get());
    std::atomic<bool> acknowledged{false};
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      acknowledged = true;
      ::ibv_ack_async_event(&read);
    });
    const auto gone = pair.a.qp.reset();
    CHECK(acknowledged);
    other.join();
    CHECK(gone);
    // An unread event is dropped with the queue pair that it names.
    or_throw(modify_qp(pair.b.qp, to, IBV_QP_STATE));
    CHECK(test::readable(pair.b.context->async_fd));
    or_throw(pair.b.qp.reset());
    CHECK_FALSE(test::readable(pair.b.context->async_fd));
    CHECK(events_of(pair.b.context) == "");
  }
  CHECK(test::lines(s.finish()) == "");
}

}  // namespace ibvxx::data_path_queues_test
