// Queue pairs that are connected: what every fixture of tests and benchmarks builds on.
#pragma once

#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>

namespace ibvxx::test {

/// What a queue pair is connected with, where that is not the toolkit's default.
struct connection {
  int access = IBV_ACCESS_REMOTE_WRITE;  ///< that it grants the peer
  std::uint32_t qkey = 0;
  int timeout = 14;
  int rnr_retry = 7;
  int reads = 1;  ///< RDMA reads and atomics at a time, both ways
};

/// An RC queue pair on these queues.
[[nodiscard]] inline unique_qp make_rc_qp(const unique_pd& pd, const unique_cq& send_cq,
                                          const unique_cq& recv_cq) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = send_cq.get();
  wanted.recv_cq = recv_cq.get();
  wanted.cap = {16, 16, 1, 1, 0};
  wanted.qp_type = IBV_QPT_RC;
  return or_throw(create_qp(pd, wanted));
}

/// The address of a queue pair on port 1, by the GID at index 1.
[[nodiscard]] inline qp_address address_of(const unique_qp& qp, std::uint32_t psn) {
  return local_address(qp, psn, or_throw(query_port(qp->context, 1)),
                       or_throw(query_gid_ex(qp->context, 1, 1)).gid);
}

/// RESET to RTS, from one address to another.
inline void connect(const unique_qp& qp, const qp_address& from, const qp_address& to,
                    const connection& options = {}) {
  or_throw(qp_to_init(qp, {.access = options.access, .qkey = options.qkey}));
  auto path = or_throw(rtr_options(from, to, {.sgid_index = 1}));
  path.max_dest_rd_atomic = options.reads;
  or_throw(qp_to_rtr(qp, path));
  or_throw(qp_to_rts(qp, {.sq_psn = from.psn,
                          .timeout = options.timeout,
                          .rnr_retry = options.rnr_retry,
                          .max_rd_atomic = options.reads}));
}

}  // namespace ibvxx::test
