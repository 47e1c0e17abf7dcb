// How requests fail: every status, at which side, and the states of the queue pairs; retries, and
// flushes. Soft-RoCE and hardware side by side where they differ.
#include "suite.hpp"
#include "support/queue_pairs.hpp"
#include "support/trace.hpp"

namespace ibvxx::data_path_errors_test {
namespace {

using test::device_profile;
using test::drain;
using test::events_of;
using test::pair_options;
using test::polled;
using test::queue_pairs;
using test::receive;
using test::request;

constexpr std::uint32_t unknown_key = 0x7fffff01;

/// What each side says of one request, on one kind of device.
struct outcome {
  std::string requester;  ///< its completions
  std::string responder;
  std::string event;  ///< of the responder
  ibv_qp_state responder_state;
};

/// Posts with `post` on a new pair and compares. A refused request has no completion: the
/// requester's is "refused" and the errno's number.
template <class Post>
void expect(device_profile profile, const outcome& expected, Post&& post,
            const pair_options& options = {}) {
  shim::session s(test::two_devices(profile));
  {
    queue_pairs pair(options);
    INFO((profile == device_profile::hardware ? "hardware" : "Soft-RoCE"));
    const int refused = post(pair);
    CHECK((refused == 0 ? polled(pair.a.send_cq) : "refused " + std::to_string(refused)) ==
          expected.requester);
    CHECK(polled(pair.b.recv_cq) == expected.responder);
    CHECK(events_of(pair.b.context) == expected.event);
    CHECK(pair.b.state() == expected.responder_state);
    if (refused == 0 && expected.requester.find("SUCCESS") == std::string::npos)
      CHECK(pair.a.state() == IBV_QPS_ERR);
    else
      CHECK(pair.a.state() == IBV_QPS_RTS);
  }
  CHECK(test::lines(s.finish()) == "");
}

template <class Post>
void expect(const outcome& soft_roce, const outcome& hardware, Post&& post,
            const pair_options& options = {}) {
  expect(device_profile::soft_roce, soft_roce, post, options);
  expect(device_profile::hardware, hardware, post, options);
}

constexpr auto RTS = IBV_QPS_RTS, ERR = IBV_QPS_ERR;

int write(queue_pairs& pair, const ibv_sge& piece, std::uint64_t address, std::uint32_t rkey,
          ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE) {
  return request(1, opcode, {piece}).to(address, rkey).post(pair.a.qp);
}

}  // namespace

TEST_CASE("table: an unknown lkey") {
  const outcome soft{"1 LOC_QP_OP_ERR", "", "", RTS}, hard{"1 LOC_PROT_ERR", "", "", RTS};
  expect(soft, hard, [](queue_pairs& pair) {
    return write(pair, {pair.a.at(), 8, unknown_key}, pair.b.at(), pair.b.region->rkey);
  });
  expect(soft, hard, [](queue_pairs& pair) {
    CHECK(receive(pair.b.qp, 5, {pair.b.piece(0, 64)}) == 0);
    return request(1, IBV_WR_SEND, {{pair.a.at(), 8, unknown_key}}).post(pair.a.qp);
  });
  expect(hard, hard, [](queue_pairs& pair) {
    return write(pair, {pair.a.at(), 8, unknown_key}, pair.b.at(), pair.b.region->rkey,
                 IBV_WR_RDMA_READ);
  });
}

TEST_CASE("local memory outside its region, of another domain, or read-only is LOC_PROT_ERR") {
  const outcome fault{"1 LOC_PROT_ERR", "", "", RTS};
  expect(fault, fault, [](queue_pairs& pair) {  // across the end
    return write(pair, pair.a.piece(4090, 7), pair.b.at(), pair.b.region->rkey);
  });
  expect(fault, fault, [](queue_pairs& pair) {  // just before the beginning
    return write(pair, {pair.a.at() - 1, 1, pair.a.region->lkey}, pair.b.at(), pair.b.region->rkey);
  });
  expect(fault, fault, [](queue_pairs& pair) {  // wraps around
    return write(pair, {UINT64_MAX - 2, 8, pair.a.region->lkey}, pair.b.at(), pair.b.region->rkey);
  });
  expect(fault, fault,
         [](queue_pairs& pair) {
           return write(pair, pair.a.piece(0, 8), pair.b.at(), pair.b.region->rkey,
                        IBV_WR_RDMA_READ);
         },
         {.region_access = IBV_ACCESS_REMOTE_READ});
  // The last byte is inside.
  const outcome fine{"1 SUCCESS RDMA_WRITE", "", "", RTS};
  expect(fine, fine, [](queue_pairs& pair) {
    return write(pair, pair.a.piece(4090, 6), pair.b.at(4090), pair.b.region->rkey);
  });
}

TEST_CASE("an lkey of another protection domain fails like an unknown one") {
  const auto foreign = [](queue_pairs& pair) {
    // It must be destroyed before its context, and the request is done when it is posted.
    const auto pd = or_throw(alloc_pd(pair.a.context));
    const auto region =
        or_throw(reg_mr(pd, pair.a.memory, sizeof pair.a.memory, test::every_access));
    return write(pair, {pair.a.at(), 8, region->lkey}, pair.b.at(), pair.b.region->rkey);
  };
  expect({"1 LOC_QP_OP_ERR", "", "", RTS}, {"1 LOC_PROT_ERR", "", "", RTS}, foreign);
}

TEST_CASE("table: an unknown rkey, outside the MR, no remote access on the MR, another PD") {
  const outcome soft{"1 REM_ACCESS_ERR", "", "", ERR};
  const outcome hard{"1 REM_ACCESS_ERR", "", "QP_ACCESS_ERR", ERR};
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    expect(soft, hard, [opcode](queue_pairs& pair) {
      return write(pair, pair.a.piece(0, 8), pair.b.at(), unknown_key, opcode);
    });
    expect(soft, hard, [opcode](queue_pairs& pair) {
      return write(pair, pair.a.piece(0, 8), pair.b.at(4089), pair.b.region->rkey, opcode);
    });
    expect(soft, hard, [opcode](queue_pairs& pair) {
      return write(pair, pair.a.piece(0, 8), pair.b.at() - 1, pair.b.region->rkey, opcode);
    });
    expect(soft, hard,
           [opcode](queue_pairs& pair) {
             return write(pair, pair.a.piece(0, 8), pair.b.at(), pair.b.region->rkey, opcode);
           },
           {.region_access = IBV_ACCESS_LOCAL_WRITE});
    expect(soft, hard, [opcode](queue_pairs& pair) {
      const auto pd = or_throw(alloc_pd(pair.b.context));
      const auto region =
          or_throw(reg_mr(pd, pair.b.memory, sizeof pair.b.memory, test::every_access));
      return write(pair, pair.a.piece(0, 8), pair.b.at(), region->rkey, opcode);
    });
  }
  expect(soft, hard, [](queue_pairs& pair) {  // an atomic on memory without remote atomics
    const auto region = or_throw(reg_mr(pair.b.pd, pair.b.memory, sizeof pair.b.memory,
                                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    request add(1, IBV_WR_ATOMIC_FETCH_AND_ADD, {pair.a.piece(0, 8)});
    add.atomic(pair.b, 0, 1);
    add.wr.wr.atomic.rkey = region->rkey;
    return add.post(pair.a.qp);
  });
}

TEST_CASE("a deregistered region's keys are unknown, also when its memory is registered again") {
  expect({"1 REM_ACCESS_ERR", "", "", ERR}, {"1 REM_ACCESS_ERR", "", "QP_ACCESS_ERR", ERR},
         [](queue_pairs& pair) {
           const std::uint32_t rkey = pair.b.region->rkey;
           or_throw(pair.b.region.reset());
           pair.b.region =
               or_throw(reg_mr(pair.b.pd, pair.b.memory, sizeof pair.b.memory, test::every_access));
           CHECK(pair.b.region->rkey != rkey);
           return write(pair, pair.a.piece(0, 8), pair.b.at(), rkey);
         });
}

TEST_CASE("table: a queue pair that grants no such access") {
  const outcome soft{"1 REM_INV_REQ_ERR", "", "", ERR};
  const outcome hard{"1 REM_INV_REQ_ERR", "", "QP_REQ_ERR", ERR};
  const auto post = [](ibv_wr_opcode opcode) {
    return [opcode](queue_pairs& pair) {
      return write(pair, pair.a.piece(0, 8), pair.b.at(), pair.b.region->rkey, opcode);
    };
  };
  expect(soft, hard, post(IBV_WR_RDMA_WRITE), {.access = IBV_ACCESS_REMOTE_READ});
  expect(soft, hard, post(IBV_WR_RDMA_READ), {.access = IBV_ACCESS_REMOTE_WRITE});
  expect(soft, hard,
         [](queue_pairs& pair) {
           return request(1, IBV_WR_ATOMIC_FETCH_AND_ADD, {pair.a.piece(0, 8)})
               .atomic(pair.b, 0, 1)
               .post(pair.a.qp);
         },
         {.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ});
}

TEST_CASE("table: a message longer than the receive buffer") {
  expect({"1 REM_OP_ERR", "5 LOC_QP_OP_ERR; 6 WR_FLUSH_ERR", "", ERR},
         {"1 REM_INV_REQ_ERR", "5 LOC_LEN_ERR; 6 WR_FLUSH_ERR", "", ERR}, [](queue_pairs& pair) {
           CHECK(receive(pair.b.qp, 5, {pair.b.piece(0, 4), pair.b.piece(8, 3)}) == 0);
           CHECK(receive(pair.b.qp, 6, {pair.b.piece(0, 64)}) == 0);
           return request(1, IBV_WR_SEND, {pair.a.piece(0, 8)}).post(pair.a.qp);
         });
}

TEST_CASE("a receive whose memory is gone fails on both sides") {
  expect({"1 REM_OP_ERR", "5 LOC_QP_OP_ERR", "", ERR}, {"1 REM_OP_ERR", "5 LOC_PROT_ERR", "", ERR},
         [](queue_pairs& pair) {
           CHECK(receive(pair.b.qp, 5, {{pair.b.at(), 64, unknown_key}}) == 0);
           return request(1, IBV_WR_SEND, {pair.a.piece(0, 8)}).post(pair.a.qp);
         });
}

TEST_CASE("table: no receive posted") {
  for (const int tries : {0, 1, 6})
    for (const auto opcode : {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM})
      expect({"1 RNR_RETRY_EXC_ERR", "", "", RTS}, {"1 RNR_RETRY_EXC_ERR", "", "", RTS},
             [opcode](queue_pairs& pair) {
               return write(pair, pair.a.piece(0, 8), pair.b.at(), pair.b.region->rkey, opcode);
             },
             {.rnr_retry = tries});
}

TEST_CASE("table: a misaligned atomic") {
  expect({"refused " + std::to_string(EINVAL), "", "", RTS},
         {"1 REM_INV_REQ_ERR", "", "QP_REQ_ERR", ERR}, [](queue_pairs& pair) {
           return request(1, IBV_WR_ATOMIC_FETCH_AND_ADD, {pair.a.piece(0, 8)})
               .atomic(pair.b, 4, 1)
               .post(pair.a.qp);
         });
}

TEST_CASE("table: the peer is in ERR, in RESET, gone, or its port is down") {
  for (const auto profile : {device_profile::soft_roce, device_profile::hardware}) {
    const auto unanswered = [profile](auto&& end, const char* status = "RETRY_EXC_ERR") {
      shim::session s(test::two_devices(profile));
      {
        queue_pairs pair({.device_b = "sim1"});
        end(s, pair);
        CHECK(write(pair, pair.a.piece(0, 8), pair.b.at(), pair.b.region->rkey) == 0);
        CHECK(polled(pair.a.send_cq) == std::string("1 ") + status);
        CHECK(pair.a.state() == ERR);
        CHECK(pair.b.text(0, 8) == std::string(8, '\0'));
      }
      CHECK(test::lines(s.finish()) == "");
    };
    unanswered([](shim::session&, queue_pairs& pair) { or_throw(qp_to_error(pair.b.qp)); });
    unanswered([](shim::session&, queue_pairs& pair) { or_throw(qp_to_reset(pair.b.qp)); });
    unanswered([](shim::session&, queue_pairs& pair) { or_throw(pair.b.qp.reset()); });
    unanswered([](shim::session& s, queue_pairs&) { s.set_port_state("sim1", 1, IBV_PORT_DOWN); });
  }
}

TEST_CASE("table: the own queue pair in ERR flushes both queues, unsignaled requests too") {
  for (const auto profile : {device_profile::soft_roce, device_profile::hardware}) {
    shim::session s(test::two_devices(profile));
    {
      queue_pairs pair;
      // With no receive at the peer, and retries without end, these two wait.
      CHECK(request(1, IBV_WR_SEND, {pair.a.piece(0, 8)}).flags(0).post(pair.a.qp) == 0);
      CHECK(request(2, IBV_WR_SEND, {pair.a.piece(0, 8)}).post(pair.a.qp) == 0);
      CHECK(receive(pair.a.qp, 3, {pair.a.piece(0, 8)}) == 0);
      CHECK(receive(pair.a.qp, 4, {pair.a.piece(0, 8)}) == 0);
      CHECK(drain(pair.a.send_cq).empty());
      or_throw(qp_to_error(pair.a.qp));
      CHECK(polled(pair.a.send_cq) == "1 WR_FLUSH_ERR; 2 WR_FLUSH_ERR");
      CHECK(polled(pair.a.recv_cq) == "3 WR_FLUSH_ERR; 4 WR_FLUSH_ERR");
      // Later requests are accepted and flushed; the keys of their memory are not checked.
      CHECK(request(5, IBV_WR_SEND, {{1, 8, unknown_key}}).flags(0).post(pair.a.qp) == 0);
      CHECK(polled(pair.a.send_cq) == "5 WR_FLUSH_ERR");
      // A receive as well: by hardware at once, by Soft-RoCE at the next change to ERR (measured).
      CHECK(receive(pair.a.qp, 6, {pair.a.piece(0, 8)}) == 0);
      if (profile == device_profile::soft_roce) {
        CHECK(polled(pair.a.recv_cq) == "");
        or_throw(qp_to_error(pair.a.qp));
      }
      CHECK(polled(pair.a.recv_cq) == "6 WR_FLUSH_ERR");
      CHECK(polled(pair.b.recv_cq) == "");  // no flushed message went anywhere
    }
    CHECK(test::lines(s.finish()) == "");
  }
}

TEST_CASE("after an error the requests behind it are flushed, in order") {
  shim::session s;
  {
    queue_pairs pair;
    ibv_sge piece = pair.a.piece(0, 8);
    ibv_send_wr list[3] = {};
    for (std::uint64_t i = 0; i < 3; ++i) {
      list[i].wr_id = i + 1;
      list[i].next = i < 2 ? &list[i + 1] : nullptr;
      list[i].sg_list = &piece;
      list[i].num_sge = 1;
      list[i].opcode = IBV_WR_RDMA_WRITE;
      list[i].wr.rdma.remote_addr = pair.b.at();
      list[i].wr.rdma.rkey = i == 1 ? unknown_key : pair.b.region->rkey;
    }
    or_throw(post_send(pair.a.qp, list));
    CHECK(polled(pair.a.send_cq) == "2 REM_ACCESS_ERR; 3 WR_FLUSH_ERR");  // unsignaled, all of them
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("requests that wait are dropped by RESET, and none of them completes") {
  for (const auto profile : {device_profile::soft_roce, device_profile::hardware}) {
    shim::session s(test::two_devices(profile));
    {
      const pair_options options;
      queue_pairs pair(options);
      CHECK(request(1, IBV_WR_SEND, {pair.a.piece(0, 8)}).post(pair.a.qp) == 0);
      CHECK(receive(pair.a.qp, 2, {pair.a.piece(0, 8)}) == 0);
      or_throw(qp_to_reset(pair.a.qp));
      or_throw(qp_to_reset(pair.b.qp));
      pair.a.connect_to(pair.b.address, options);
      pair.b.connect_to(pair.a.address, options);
      CHECK(receive(pair.b.qp, 3, {pair.b.piece(0, 8)}) == 0);
      CHECK(polled(pair.a.send_cq) + polled(pair.a.recv_cq) + polled(pair.b.recv_cq) == "");
      CHECK(request(4, IBV_WR_SEND, {pair.a.piece(0, 4)}).post(pair.a.qp) == 0);
      CHECK(polled(pair.a.send_cq) == "4 SUCCESS SEND");
      CHECK(polled(pair.b.recv_cq) == "3 SUCCESS RECV 4");
    }
    CHECK(test::lines(s.finish()) == "");
  }
}

TEST_CASE("a destroyed queue pair's requests are gone with it") {
  shim::session s;
  {
    queue_pairs pair;
    CHECK(request(1, IBV_WR_SEND, {pair.a.piece(0, 8)}).post(pair.a.qp) == 0);
    or_throw(pair.a.qp.reset());
    CHECK(receive(pair.b.qp, 2, {pair.b.piece(0, 8)}) == 0);
    CHECK(polled(pair.a.send_cq) == "");
    CHECK(polled(pair.b.recv_cq) == "");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("a request that waits fails when its memory is deregistered") {
  shim::session s;
  s.expect(shim::finding_kind::memory_in_use);
  {
    queue_pairs pair;
    CHECK(request(1, IBV_WR_SEND, {pair.a.piece(0, 8)}).post(pair.a.qp) == 0);
    or_throw(pair.a.region.reset());
    CHECK(polled(pair.a.send_cq) == "1 LOC_QP_OP_ERR");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("requests are refused before RTS, receives in RESET") {
  shim::session s;
  {
    pair_options options;
    test::end_point end("sim0", options);
    CHECK(receive(end.qp, 1, {}) == EINVAL);
    for (int state = 0; state < 3; ++state) {
      if (state == 1) or_throw(qp_to_init(end.qp, {.access = options.access}));
      if (state == 2)
        or_throw(
            qp_to_rtr(end.qp, or_throw(rtr_options(end.address, end.address, {.sgid_index = 1}))));
      CHECK(request(1, IBV_WR_RDMA_WRITE, {}).post(end.qp) == EINVAL);
      if (state != 0) CHECK(receive(end.qp, 1, {}) == 0);
    }
    CHECK(polled(end.send_cq) == "");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("retries cost no time, whatever timeout and counts the queue pair has") {
  const auto began = std::chrono::steady_clock::now();
  shim::session s;
  {
    // 4.096 us * 2^31 is 2.4 hours, eight times.
    queue_pairs silent(pair_options{.timeout = 31});
    or_throw(qp_to_error(silent.b.qp));
    CHECK(write(silent, silent.a.piece(0, 8), silent.b.at(), silent.b.region->rkey) == 0);
    CHECK(polled(silent.a.send_cq) == "1 RETRY_EXC_ERR");
    queue_pairs busy(pair_options{.rnr_retry = 6});
    CHECK(request(1, IBV_WR_SEND, {busy.a.piece(0, 8)}).post(busy.a.qp) == 0);
    CHECK(polled(busy.a.send_cq) == "1 RNR_RETRY_EXC_ERR");
  }
  CHECK(test::lines(s.finish()) == "");
  // A thousandth of what one real timeout would take, with room for a busy machine.
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(2));
}

TEST_CASE("rnr_retry 7 waits until a receive is posted; later requests wait behind it") {
  for (const auto profile : {device_profile::soft_roce, device_profile::hardware}) {
    shim::session s(test::two_devices(profile));
    {
      queue_pairs pair({.rnr_retry = 7, .device_b = "sim1"});
      pair.a.fill(0, "patience");
      CHECK(request(1, IBV_WR_SEND, {pair.a.piece(0, 8)}).post(pair.a.qp) == 0);
      CHECK(write(pair, pair.a.piece(0, 8), pair.b.at(64), pair.b.region->rkey) == 0);
      CHECK(polled(pair.a.send_cq) == "");
      CHECK(pair.b.text(64, 1) == std::string(1, '\0'));
      CHECK(receive(pair.b.qp, 9, {pair.b.piece(0, 64)}) == 0);
      CHECK(polled(pair.b.recv_cq) == "9 SUCCESS RECV 8");
      CHECK(polled(pair.a.send_cq) == "1 SUCCESS SEND; 1 SUCCESS RDMA_WRITE");
      CHECK(pair.b.text(64, 8) == "patience");
    }
    CHECK(test::lines(s.finish()) == "");
  }
}

TEST_CASE("a timeout of 0 waits until the peer answers again") {
  shim::session s(test::two_devices());
  {
    queue_pairs pair({.timeout = 0, .device_b = "sim1"});
    s.set_port_state("sim1", 1, IBV_PORT_DOWN);
    CHECK(write(pair, pair.a.piece(0, 8), pair.b.at(), pair.b.region->rkey) == 0);
    CHECK(polled(pair.a.send_cq) == "");
    s.set_port_state("sim1", 1, IBV_PORT_ACTIVE);
    CHECK(polled(pair.a.send_cq) == "1 SUCCESS RDMA_WRITE");
  }
  CHECK(test::lines(s.finish()) == "");
}

}  // namespace ibvxx::data_path_errors_test
