#include "connection.hpp"

namespace conformance {
namespace {

constexpr std::size_t memory_size = 1 << 16;

}  // namespace

side::side(const setting& s, const connection_options& options, ibv_srq* srq)
    : cq(make_cq(s, options.cqe, options.channel)), memory(s, memory_size) {
  connection_options mine = options;
  mine.srq = srq;
  qp = make_qp(s, cq.get(), mine);
}

connection::connection(const setting& s, const connection_options& options)
    : requester(s, options, nullptr), responder(s, options, options.srq) {
  bring_to(s, responder.qp.get(), IBV_QPS_RTS, requester.qp->qp_num, options);
  connection_options open = options;
  open.access = every_access;
  bring_to(s, requester.qp.get(), IBV_QPS_RTS, responder.qp->qp_num, open);
}

owned<ibv_qp> make_qp(const setting& s, ibv_cq* cq, const connection_options& options) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq;
  wanted.srq = options.srq;
  wanted.cap = options.cap;
  wanted.qp_type = options.type;
  wanted.sq_sig_all = options.signal_all ? 1 : 0;
  owned<ibv_qp> made(ibv_create_qp(s.pd, &wanted));
  need(made != nullptr, "ibv_create_qp");
  return made;
}

ibv_qp_attr usual_attributes(const setting& s, std::uint32_t peer,
                             const connection_options& options) {
  ibv_qp_attr attr{};
  attr.path_mtu = IBV_MTU_1024;
  attr.path_mig_state = IBV_MIG_MIGRATED;
  attr.qkey = qkey;
  attr.rq_psn = attr.sq_psn = 0x123;
  attr.dest_qp_num = peer;
  attr.qp_access_flags = options.access & ~static_cast<unsigned>(IBV_ACCESS_MW_BIND);
  attr.cap = options.cap;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = s.gid;
  attr.ah_attr.grh.sgid_index = 1;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.port_num = 1;
  attr.alt_ah_attr = attr.ah_attr;
  attr.alt_port_num = 1;
  attr.alt_timeout = options.timeout;
  attr.max_rd_atomic = attr.max_dest_rd_atomic = options.read_depth;
  attr.min_rnr_timer = options.rnr_timer;
  attr.port_num = 1;
  attr.timeout = options.timeout;
  attr.retry_cnt = options.retries;
  attr.rnr_retry = options.rnr_retries;
  return attr;
}

int init_mask(ibv_qp_type type) {
  return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

int rtr_mask(ibv_qp_type type) {
  if (type == IBV_QPT_UD) return 0;
  const int both = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  return type == IBV_QPT_UC ? both : both | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int rts_mask(ibv_qp_type type) {
  if (type != IBV_QPT_RC) return IBV_QP_SQ_PSN;
  return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC;
}

void bring_to(const setting& s, ibv_qp* qp, ibv_qp_state state, std::uint32_t peer,
              const connection_options& options) {
  ibv_qp_attr attr = usual_attributes(s, peer, options);
  const auto go = [&](ibv_qp_state next, int mask) {
    attr.qp_state = next;
    errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
    need(errno == 0, "ibv_modify_qp");
  };
  const ibv_qp_type type = options.type;
  if (state == IBV_QPS_RESET) return;
  go(IBV_QPS_INIT, init_mask(type));
  if (state == IBV_QPS_INIT) return;
  if (state == IBV_QPS_ERR) return go(IBV_QPS_ERR, 0);
  go(IBV_QPS_RTR, rtr_mask(type));
  if (state == IBV_QPS_RTR) return;
  go(IBV_QPS_RTS, rts_mask(type));
  if (state != IBV_QPS_SQD) return;
  go(IBV_QPS_SQD, 0);
  wait_until_drained(s, qp);
}

void wait_until_drained(const setting& s, ibv_qp* qp) {
  const bool drained = wait_for(s.world.patience(), [&] {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.sq_draining == 0;
  });
  need(drained, "draining");
}

ibv_qp_state state_of(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  need(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
  return attr.qp_state;
}

std::string state_after(const setting& s, ibv_qp* qp, ibv_qp_state expected) {
  wait_for(s.world.silence(), [&] { return state_of(qp) == expected; });
  return name(state_of(qp));
}

int modify_state(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

request::request(std::uint64_t id, ibv_wr_opcode opcode, std::vector<ibv_sge> local)
    : pieces(std::move(local)) {
  wr.wr_id = id;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
}

request& request::flags(unsigned more) noexcept {
  wr.send_flags |= more;
  return *this;
}

request& request::remote(std::uint64_t address, std::uint32_t rkey) noexcept {
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = rkey;
  return *this;
}

request& request::atomic(std::uint64_t address, std::uint32_t rkey, std::uint64_t compare_add,
                         std::uint64_t swap) noexcept {
  wr.wr.atomic.remote_addr = address;
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
  return *this;
}

request& request::immediate(std::uint32_t value) noexcept {
  wr.imm_data = htobe32(value);
  return *this;
}

request& request::datagram(ibv_ah* ah, std::uint32_t qpn, std::uint32_t key) noexcept {
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = qpn;
  wr.wr.ud.remote_qkey = key;
  return *this;
}

int request::post(ibv_qp* qp) {
  wr.sg_list = pieces.data();
  wr.num_sge = static_cast<int>(pieces.size());
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &wr, &bad);
}

int post_receive(ibv_qp* qp, std::uint64_t id, std::vector<ibv_sge> pieces) {
  ibv_recv_wr wr{id, nullptr, pieces.data(), static_cast<int>(pieces.size())};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp, &wr, &bad);
}

int post_receive(ibv_srq* srq, std::uint64_t id, std::vector<ibv_sge> pieces) {
  ibv_recv_wr wr{id, nullptr, pieces.data(), static_cast<int>(pieces.size())};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_srq_recv(srq, &wr, &bad);
}

}  // namespace conformance
