// Findings about events, batches and threads.
#include "machine.hpp"

namespace ibvxx::findings_events_test {

using test::finding_kind;
using test::machine;

namespace {

/// A device with thread domains, and a queue pair and a CQ in one.
struct domain : machine {
  ibv_td_init_attr wanted_td{};
  ibv_td* td = ::ibv_alloc_td(context, &wanted_td);
  ibv_parent_domain_init_attr wanted_domain{pd, td, 0, nullptr, nullptr, nullptr};
  ibv_pd* single = ::ibv_alloc_parent_domain(context, &wanted_domain);
  ibv_qp_init_attr wanted_qp = queue_pair();
  ibv_qp* own = ::ibv_create_qp(single, &wanted_qp);

  void end() {
    CHECK(::ibv_destroy_qp(own) == 0);
    CHECK(::ibv_dealloc_pd(single) == 0);
    CHECK(::ibv_dealloc_td(td) == 0);
  }
};

/// Begins an iteration on a queue, with a completion to be at: that of a flushed receive.
void iterate_with_a_completion(ibv_pd* pd, ibv_cq_ex* polled) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = ::ibv_cq_ex_to_cq(polled);
  attributes.cap = {1, 1, 1, 1, 0};
  attributes.qp_type = IBV_QPT_UD;
  ibv_qp* qp = ::ibv_create_qp(pd, &attributes);
  ibv_qp_attr to_init{};
  to_init.qp_state = IBV_QPS_INIT;
  to_init.port_num = 1;
  REQUIRE(::ibv_modify_qp(qp, &to_init,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
  ibv_recv_wr receive{1, nullptr, nullptr, 0};
  ibv_recv_wr* bad = nullptr;
  REQUIRE(::ibv_post_recv(qp, &receive, &bad) == 0);
  ibv_qp_attr to_error{};
  to_error.qp_state = IBV_QPS_ERR;
  REQUIRE(::ibv_modify_qp(qp, &to_error, IBV_QP_STATE) == 0);
  ibv_poll_cq_attr none{};
  REQUIRE(::ibv_start_poll(polled, &none) == 0);
  REQUIRE(::ibv_destroy_qp(qp) == 0);
}

}  // namespace

TEST_CASE_METHOD(machine, "a queue is destroyed with an event read and not acknowledged") {
  // finding: unacknowledged events
  ibv_cq* other = ::ibv_create_cq(context, 1, nullptr, channel, 0);
  s.raise_spurious_event(other);
  ibv_cq* named = nullptr;
  void* cq_context = nullptr;
  ::ibv_get_cq_event(channel, &named, &cq_context);
  ::ibv_destroy_cq(other);
  // end
  check(finding_kind::unacknowledged_events,
        {"CQ#4 of sim0, made by ibv_create_cq", "1 completion events read and 0 acknowledged",
         "libibverbs would wait for ever"});
}

TEST_CASE_METHOD(machine, "more events are acknowledged than were read") {
  // finding: over-acknowledged events
  ::ibv_ack_cq_events(cq, 1);
  // end
  s.raise_spurious_event(cq);  // so that its destroy finds the two equal
  ibv_cq* named = nullptr;
  void* cq_context = nullptr;
  CHECK(::ibv_get_cq_event(channel, &named, &cq_context) == 0);
  check(finding_kind::over_acknowledged_events,
        {"CQ#1 of sim0, made by ibv_create_cq",
         "acknowledged completion event number 1, but only 0"});
}

TEST_CASE("events may be acknowledged while the destroy waits, within the deadline") {
  // no finding: unacknowledged events
  // no finding: over-acknowledged events
  machine m({.destroy_deadline = std::chrono::seconds(20)});
  ibv_cq* other = ::ibv_create_cq(m.context, 1, nullptr, m.channel, 0);
  for (int i = 0; i < 2; ++i) m.s.raise_spurious_event(other);
  ibv_cq* named = nullptr;
  void* cq_context = nullptr;
  for (int i = 0; i < 2; ++i) CHECK(::ibv_get_cq_event(m.channel, &named, &cq_context) == 0);
  std::thread acknowledging([other] { ::ibv_ack_cq_events(other, 2); });
  CHECK(::ibv_destroy_cq(other) == 0);
  acknowledging.join();
  m.check_clean();
}

TEST_CASE_METHOD(machine, "an iteration is ended that was never begun") {
  // finding: unbalanced batch
  ::ibv_end_poll(polled);
  // end
  check(finding_kind::unbalanced_batch, {"ibv_end_poll (call ", "without an ibv_start_poll"});
}

TEST_CASE_METHOD(machine,
                 "reading a field outside of an iteration returns zeros, and is a finding") {
  CHECK(::ibv_wc_read_opcode(polled) == 0);
  check(finding_kind::unbalanced_batch,
        {"a completion of CQ#3 of sim0 was read without an ibv_start_poll"});
}

TEST_CASE_METHOD(machine, "an iteration is begun, read and ended by one thread") {
  // no finding: unbalanced batch
  // no finding: wrong thread
  iterate_with_a_completion(pd, polled);
  CHECK(polled->status == IBV_WC_WR_FLUSH_ERR);
  CHECK(::ibv_wc_read_vendor_err(polled) == 0);
  CHECK(::ibv_next_poll(polled) == ENOENT);
  ::ibv_end_poll(polled);
  check_clean();
}

TEST_CASE_METHOD(machine, "a thread ends the iteration that another has begun") {
  iterate_with_a_completion(pd, polled);
  // finding: wrong thread
  // After an ibv_start_poll(polled, ...) on this thread:
  std::thread([this] { ::ibv_end_poll(polled); }).join();
  // end
  check(finding_kind::wrong_thread,
        {"ibv_end_poll (call ", "in an iteration that another thread has begun"});
}

TEST_CASE_METHOD(machine, "a thread reads the completion that another's iteration is at") {
  iterate_with_a_completion(pd, polled);
  std::thread([this] { CHECK(::ibv_wc_read_vendor_err(polled) == 0); }).join();
  ::ibv_end_poll(polled);
  check(finding_kind::wrong_thread, {"was read in an iteration that another thread has begun"});
}

TEST_CASE_METHOD(machine,
                 "a thread builds requests in a batch that another has begun, or ends it") {
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = cq;
  attributes.recv_cq = receive_cq;
  attributes.cap = {4, 4, 1, 1, 0};
  attributes.qp_type = IBV_QPT_RC;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attributes.pd = pd;
  attributes.send_ops_flags = IBV_QP_EX_WITH_SEND;
  ibv_qp* built = ::ibv_create_qp_ex(context, &attributes);
  ibv_qp_ex* batch = ::ibv_qp_to_qp_ex(built);
  ::ibv_wr_start(batch);
  ::ibv_wr_send(batch);
  s.expect(finding_kind::wrong_thread, "a request was built on QP#3 of sim0 in a batch that");
  std::thread([batch] { ::ibv_wr_send(batch); }).join();
  s.expect(finding_kind::wrong_thread, "on QP#3 of sim0 ended a batch that another thread");
  std::thread([batch] { ::ibv_wr_abort(batch); }).join();
  s.expect(finding_kind::unbalanced_batch, "a request was built on QP#3 of sim0 without");
  ::ibv_wr_send(batch);
  s.expect(finding_kind::unbalanced_batch, "without an ibv_wr_start");
  CHECK(::ibv_wr_complete(batch) == EINVAL);
  CHECK(::ibv_destroy_qp(built) == 0);
  check_clean();
}

TEST_CASE_METHOD(domain, "two threads are in one thread domain at the same time") {
  std::atomic<bool> inside{false}, go_on{false};
  s.at(verb::post_recv).run([&] {
    inside = true;
    while (!go_on) std::this_thread::yield();
  });
  std::thread first([&] { CHECK(::ibv_post_recv(own, &receive, &bad_receive) == EINVAL); });
  while (!inside) std::this_thread::yield();
  ibv_recv_wr* bad = nullptr;
  s.expect(finding_kind::wrong_state);  // both are posted in RESET
  s.expect(finding_kind::wrong_state);
  CHECK(::ibv_post_recv(own, &receive, &bad) == EINVAL);
  go_on = true;
  first.join();
  end();
  check(finding_kind::wrong_thread,
        {"ibv_post_recv (call ", "QP#3 of sim0 while another thread is in ibv_post_recv on it",
         "thread domain#1 of sim0 promises one thread at a time"});
}

TEST_CASE_METHOD(domain, "threads that take turns in a thread domain, and others outside it") {
  s.tolerate(finding_kind::wrong_state);
  std::atomic<bool> inside{false}, go_on{false};
  s.at(verb::post_recv).on(own).run([&] {
    inside = true;
    while (!go_on) std::this_thread::yield();
  });
  std::thread first([&] {
    ibv_recv_wr* bad = nullptr;
    CHECK(::ibv_post_recv(own, &receive, &bad) == EINVAL);
  });
  while (!inside) std::this_thread::yield();
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);  // in no domain
  go_on = true;
  first.join();
  CHECK(::ibv_post_recv(own, &receive, &bad_receive) == EINVAL);
  end();
  check_clean();
}

TEST_CASE_METHOD(machine, "a thread polls a single-threaded queue within another's iteration") {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = 1;
  attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attributes.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  ibv_cq_ex* own = ::ibv_create_cq_ex(context, &attributes);
  iterate_with_a_completion(pd, own);
  std::thread([own] {
    ibv_wc wc;
    CHECK(::ibv_poll_cq(::ibv_cq_ex_to_cq(own), 1, &wc) == 0);
  }).join();
  ::ibv_end_poll(own);
  CHECK(::ibv_destroy_cq(::ibv_cq_ex_to_cq(own)) == 0);
  check(finding_kind::wrong_thread,
        {"ibv_poll_cq (call ", "was created for a single thread, in another's iteration"});
}

TEST_CASE_METHOD(machine, "two threads poll a queue that was created for one") {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = 1;
  attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attributes.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  ibv_cq* own = ::ibv_cq_ex_to_cq(::ibv_create_cq_ex(context, &attributes));
  std::atomic<bool> inside{false}, go_on{false};
  s.at(verb::poll_cq).run([&] {
    inside = true;
    while (!go_on) std::this_thread::yield();
  });
  ibv_wc wc;
  std::thread first([&] {
    ibv_wc other;
    CHECK(::ibv_poll_cq(own, 1, &other) == 0);
  });
  while (!inside) std::this_thread::yield();
  CHECK(::ibv_poll_cq(own, 1, &wc) == 0);
  go_on = true;
  first.join();
  CHECK(::ibv_destroy_cq(own) == 0);
  check(finding_kind::wrong_thread, {"CQ#4 of sim0", "it was created for a single thread"});
}

}  // namespace ibvxx::findings_events_test
