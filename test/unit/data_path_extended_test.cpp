// The extended interfaces: polling by iteration, and posting one call at a time.
#include "suite.hpp"
#include "support/profiles.hpp"
#include "support/queue_pairs.hpp"
#include "support/trace.hpp"

namespace ibvxx::data_path_extended_test {
namespace {

using test::on_both_profiles;

using test::device_profile;
using test::end_point;
using test::pair_options;
using test::polled;
using test::receive;
using test::request;

constexpr std::uint64_t every_operation =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
    IBV_QP_EX_WITH_SEND_WITH_INV;

/// Two ends; that at a has an extended queue pair, which completes in an extended queue.
struct extended_pair {
  explicit extended_pair(const pair_options& options = {}, int cqe = 63)
      : a("sim0", options), b("sim0", options) {
    ibv_cq_init_attr_ex queue{};
    queue.cqe = static_cast<std::uint32_t>(cqe);
    queue.wc_flags = IBV_WC_STANDARD_FLAGS;
    cq = or_throw(create_cq_ex(a.context, queue));
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = ::ibv_cq_ex_to_cq(cq.get());
    wanted.cap = options.cap;
    wanted.qp_type = options.type;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.pd = a.pd.get();
    wanted.send_ops_flags = options.type == IBV_QPT_UD
                                ? IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM
                                : every_operation;
    qp = or_throw(create_qp_ex(a.context, wanted));
    test::connect(qp, a.address_of(qp), b.address, options);
    b.connect_to(a.address_of(qp), options);
    ex = qp_to_qp_ex(qp);
  }
  /// Begins a batch, and names its first request.
  void start(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
    wr_start(ex);
    next(id, flags);
  }
  void next(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
    ex->wr_id = id;
    ex->wr_flags = flags;
  }
  void set(std::size_t offset, std::size_t length) {
    ::ibv_wr_set_sge(ex, a.region->lkey, a.at(offset), static_cast<std::uint32_t>(length));
  }
  /// wr_complete's errno, or 0.
  int complete() {
    const auto done = wr_complete(ex);
    return done ? 0 : done.error().code();
  }
  /// All completions in the queue, read by an iteration.
  std::string iterated() {
    std::string text;
    poll_batch batch(cq);
    while (or_throw(batch.next())) {
      ibv_wc wc{};
      wc.wr_id = cq->wr_id;
      wc.status = cq->status;
      wc.opcode = ::ibv_wc_read_opcode(cq.get());
      wc.byte_len = ::ibv_wc_read_byte_len(cq.get());
      text += (text.empty() ? "" : "; ") + test::told(wc);
    }
    return text;
  }

  end_point a, b;
  unique_cq_ex cq;
  unique_qp qp;
  ibv_qp_ex* ex = nullptr;
};

}  // namespace

TEST_CASE("each operation is posted by its own call, and does what its work request does") {
  on_both_profiles([](shim::session&, device_profile) {
    extended_pair pair;
    auto& [a, b, cq, qp, ex] = pair;
    a.fill(0, "one");
    b.fill(512, "read");
    b.set_word(1024, 5);
    for (std::uint64_t id = 51; id <= 54; ++id)
      CHECK(receive(b.qp, id, {b.piece((id - 50) * 64, 64)}) == 0);
    const auto window = or_throw(alloc_mw(b.pd, IBV_MW_TYPE_2));
    const auto own = or_throw(alloc_mw(a.pd, IBV_MW_TYPE_2));
    const std::uint32_t key = ibv_inc_rkey(window->rkey), own_key = ibv_inc_rkey(own->rkey);
    request bind(60, IBV_WR_BIND_MW, {});
    bind.wr.bind_mw = {window.get(), key, {b.region.get(), b.at(), 64, IBV_ACCESS_REMOTE_WRITE}};
    CHECK(bind.post(b.qp) == 0);

    pair.start(1);
    ::ibv_wr_rdma_write(ex, b.region->rkey, b.at(2048));
    pair.set(0, 3);
    pair.next(2);
    ::ibv_wr_rdma_write_imm(ex, b.region->rkey, b.at(2100), htobe32(7));
    pair.set(0, 3);
    pair.next(3);
    ::ibv_wr_send(ex);
    pair.set(0, 3);
    pair.next(4);
    ::ibv_wr_send_imm(ex, htobe32(8));
    pair.set(0, 2);
    pair.next(5);
    ::ibv_wr_rdma_read(ex, b.region->rkey, b.at(512));
    pair.set(100, 4);
    pair.next(6);
    ::ibv_wr_atomic_cmp_swp(ex, b.region->rkey, b.at(1024), 5, 9);
    pair.set(200, 8);
    pair.next(7);
    ::ibv_wr_atomic_fetch_add(ex, b.region->rkey, b.at(1024), 1);
    pair.set(208, 8);
    pair.next(8);
    ::ibv_wr_send_inv(ex, key);
    pair.set(0, 1);
    pair.next(9);
    const ibv_mw_bind_info info{a.region.get(), a.at(), 64, IBV_ACCESS_REMOTE_READ};
    ::ibv_wr_bind_mw(ex, own.get(), own_key, &info);
    pair.next(10);
    ::ibv_wr_local_inv(ex, own_key);
    CHECK(pair.iterated() == "");  // nothing is posted before the batch is complete
    CHECK(pair.complete() == 0);
    CHECK(pair.iterated() ==
          "1 SUCCESS RDMA_WRITE; 2 SUCCESS RDMA_WRITE; 3 SUCCESS SEND; 4 SUCCESS SEND; "
          "5 SUCCESS RDMA_READ 4; 6 SUCCESS COMP_SWAP 8; 7 SUCCESS FETCH_ADD 8; 8 SUCCESS SEND; "
          "9 SUCCESS BIND_MW; 10 SUCCESS LOCAL_INV");
    CHECK(polled(b.recv_cq) ==
          "51 SUCCESS RECV_RDMA_WITH_IMM 3; 52 SUCCESS RECV 3; 53 SUCCESS RECV 2; "
          "54 SUCCESS RECV 1");
    CHECK(b.text(2048, 3) == "one");
    CHECK(b.text(2100, 3) == "one");
    CHECK(b.text(2 * 64, 3) == "one");
    CHECK(a.text(100, 4) == "read");
    CHECK(a.word(200) == 5);
    CHECK(a.word(208) == 9);
    CHECK(b.word(1024) == 10);
  });
}

TEST_CASE("pieces and inline data of a request are set as lists") {
  on_both_profiles([](shim::session&, device_profile) {
    extended_pair pair;
    auto& [a, b, cq, qp, ex] = pair;
    a.fill(0, "ab");
    a.fill(50, "cd");
    const ibv_sge pieces[] = {a.piece(0, 2), a.piece(50, 2)};
    char loose[] = "efghi";
    const ibv_data_buf parts[] = {{loose, 2}, {loose + 2, 3}};
    pair.start(1);
    ::ibv_wr_rdma_write(ex, b.region->rkey, b.at(0));
    ::ibv_wr_set_sge_list(ex, 2, pieces);
    pair.next(2);
    ::ibv_wr_rdma_write(ex, b.region->rkey, b.at(4));
    ::ibv_wr_set_inline_data_list(ex, 2, parts);
    std::fill(std::begin(loose), std::end(loose), 'x');  // copied already
    CHECK(pair.complete() == 0);
    CHECK(pair.iterated() == "1 SUCCESS RDMA_WRITE; 2 SUCCESS RDMA_WRITE");
    CHECK(b.text(0, 10) == std::string("abcdefghi\0", 10));
  });
}

TEST_CASE("an aborted batch posts nothing, and neither does one with an invalid request") {
  on_both_profiles([](shim::session&, device_profile profile) {
    extended_pair pair;
    auto& [a, b, cq, qp, ex] = pair;
    const auto write = [&, lkey = a.region->lkey](std::uint64_t id) {
      pair.next(id);
      ::ibv_wr_rdma_write(pair.ex, pair.b.region->rkey, pair.b.at());
      ::ibv_wr_set_sge(pair.ex, lkey, pair.a.at(), 8);
    };
    const int no_room = profile == device_profile::hardware ? ENOMEM : ENOSPC;
    a.fill(0, "unwanted");
    wr_start(ex);
    write(1);
    wr_abort(ex);
    wr_start(ex);
    write(2);
    write(3);
    const std::vector<ibv_sge> many(40, a.piece(0, 1));
    ::ibv_wr_set_sge_list(ex, many.size(), many.data());
    write(4);
    CHECK(pair.complete() == no_room);
    wr_start(ex);
    for (std::uint64_t id = 0; id < 64; ++id) write(id);
    CHECK(pair.complete() == no_room);
    std::vector<char> loose(1000);
    pair.start(5);
    ::ibv_wr_rdma_write(ex, b.region->rkey, b.at());
    ::ibv_wr_set_inline_data(ex, loose.data(), loose.size());
    CHECK(pair.complete() == no_room);
    CHECK(pair.iterated() == "");
    CHECK(b.text(0, 8) == std::string(8, '\0'));
    wr_start(ex);
    CHECK(pair.complete() == 0);  // nothing at all is fine
    wr_start(ex);
    write(6);
    CHECK(pair.complete() == 0);
    CHECK(pair.iterated() == "6 SUCCESS RDMA_WRITE");
  });
}

TEST_CASE("a batch is refused as a post would be: before RTS, with EINVAL") {
  shim::session s;
  {
    extended_pair pair;
    or_throw(qp_to_reset(pair.qp));
    pair.start(1);
    ::ibv_wr_send(pair.ex);
    CHECK(pair.complete() == EINVAL);
    CHECK(pair.iterated() == "");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("ibv_wr_set_ud_addr addresses datagrams") {
  on_both_profiles([](shim::session&, device_profile) {
    pair_options options;
    options.type = IBV_QPT_UD;
    extended_pair pair(options);
    auto& [a, b, cq, qp, ex] = pair;
    ibv_ah_attr path{};
    path.is_global = 1;
    path.port_num = 1;
    path.grh.dgid = b.address.gid;
    path.grh.sgid_index = 1;
    const auto ah = or_throw(create_ah(a.pd, path));
    CHECK(receive(b.qp, 1, {b.piece(0, 64)}) == 0);
    pair.start(2);
    ::ibv_wr_send_imm(ex, htobe32(3));
    ::ibv_wr_set_ud_addr(ex, ah.get(), b.qp->qp_num, test::datagram_key);
    pair.set(0, 8);
    CHECK(pair.complete() == 0);
    CHECK(pair.iterated() == "2 SUCCESS SEND");
    CHECK(polled(b.recv_cq) == "1 SUCCESS RECV 48");
  });
}

TEST_CASE("an iteration reads one completion after the other, and everything of each") {
  on_both_profiles([](shim::session&, device_profile) {
    extended_pair pair;
    auto& [a, b, cq, qp, ex] = pair;
    CHECK_FALSE(or_throw(start_poll(cq)));
    CHECK(receive(qp, 1, {a.piece(0, 64)}) == 0);
    CHECK(receive(qp, 2, {a.piece(64, 64)}) == 0);
    CHECK(request(3, IBV_WR_SEND_WITH_IMM, {b.piece(0, 5)}).immediate(77).post(b.qp) == 0);
    CHECK(request(4, IBV_WR_SEND, {b.piece(0, 65)}).post(b.qp) == 0);  // too long for the second
    REQUIRE(or_throw(start_poll(cq)));
    CHECK(cq->wr_id == 1);
    CHECK(cq->status == IBV_WC_SUCCESS);
    CHECK(::ibv_wc_read_opcode(cq.get()) == IBV_WC_RECV);
    CHECK(::ibv_wc_read_byte_len(cq.get()) == 5);
    CHECK(::ibv_wc_read_imm_data(cq.get()) == htobe32(77));
    CHECK((::ibv_wc_read_wc_flags(cq.get()) & IBV_WC_WITH_IMM) != 0);
    CHECK(::ibv_wc_read_qp_num(cq.get()) == qp->qp_num);
    CHECK(::ibv_wc_read_slid(cq.get()) == 0);
    CHECK(::ibv_wc_read_sl(cq.get()) == 0);
    CHECK(::ibv_wc_read_dlid_path_bits(cq.get()) == 0);
    REQUIRE(or_throw(next_poll(cq)));
    CHECK(cq->wr_id == 2);
    CHECK(cq->status != IBV_WC_SUCCESS);
    CHECK(::ibv_wc_read_qp_num(cq.get()) == qp->qp_num);
    CHECK_FALSE(or_throw(next_poll(cq)));
    end_poll(cq);
    CHECK_FALSE(or_throw(start_poll(cq)));
  });
}

TEST_CASE("completions that an iteration does not reach stay in the queue, also for ibv_poll_cq") {
  shim::session s;
  {
    extended_pair pair;
    wr_start(pair.ex);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      pair.next(id);
      ::ibv_wr_rdma_write(pair.ex, pair.b.region->rkey, pair.b.at());
      pair.set(0, 8);
    }
    CHECK(pair.complete() == 0);
    REQUIRE(or_throw(start_poll(pair.cq)));
    CHECK(pair.cq->wr_id == 1);
    end_poll(pair.cq);
    ibv_wc wc{};
    REQUIRE(::ibv_poll_cq(::ibv_cq_ex_to_cq(pair.cq.get()), 1, &wc) == 1);
    CHECK(wc.wr_id == 2);
    CHECK(pair.iterated() == "3 SUCCESS RDMA_WRITE");
  }
  CHECK(test::lines(s.finish()) == "");
}

TEST_CASE("on hardware a CQ can ignore overruns: completions are written over without an error") {
  shim::session s({{shim::device_description::hardware()}});
  {
    test::queue_pairs pair;
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 3;
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    wanted.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    const auto cq = or_throw(create_cq_ex(pair.a.context, wanted));
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = ::ibv_cq_ex_to_cq(cq.get());
    init.cap = {16, 16, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    const auto qp = or_throw(create_qp(pair.a.pd, init));
    test::connect(qp, pair.a.address_of(qp), pair.b.address, test::pair_options{});
    or_throw(qp_to_reset(pair.b.qp));
    pair.b.connect_to(pair.a.address_of(qp), {});
    for (std::uint64_t id = 1; id <= 5; ++id)
      CHECK(request(id, IBV_WR_RDMA_WRITE, {pair.a.piece(0, 8)}).to(pair.b, 0).post(qp) == 0);
    CHECK(test::events_of(pair.a.context) == "");
    ibv_wc some[8];
    REQUIRE(::ibv_poll_cq(::ibv_cq_ex_to_cq(cq.get()), 8, some) == 3);
    CHECK(some[0].wr_id == 3);
    CHECK(some[2].wr_id == 5);
  }
  CHECK(test::lines(s.finish()) == "");
}

}  // namespace ibvxx::data_path_extended_test
