// Queue pairs in a state to work, and requests to post on them.
#pragma once

#include "setting.hpp"

namespace conformance {

inline constexpr std::uint32_t qkey = 0x11111111;

struct connection_options {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap cap = {16, 16, 4, 4, 64};
  int cqe = 64;
  bool signal_all = false;
  unsigned access = every_access;  ///< of the responder's queue pair
  std::uint8_t timeout = 14;       ///< 4.096 us * 2^timeout
  std::uint8_t retries = 7;
  std::uint8_t rnr_retries = 7;  ///< 7: for ever
  std::uint8_t rnr_timer = 1;    ///< 10 us
  ibv_srq* srq = nullptr;        ///< the responder's
  ibv_comp_channel* channel = nullptr;
  std::uint8_t read_depth = 4;
};

/// One side: a queue pair, one CQ for both of its queues, and memory.
struct side {
  side(const setting& s, const connection_options& options, ibv_srq* srq);

  owned<ibv_cq> cq;
  region memory;
  owned<ibv_qp> qp;
};

/// Two queue pairs of one device, connected to each other and ready to send.
struct connection {
  connection(const setting& s, const connection_options& options = {});

  side requester;
  side responder;
};

/// Every attribute with a value that is valid; which of them are used is the mask's business.
[[nodiscard]] ibv_qp_attr usual_attributes(const setting& s, std::uint32_t peer,
                                           const connection_options& options = {});
/// Masks of the required attributes, without the state.
[[nodiscard]] int init_mask(ibv_qp_type type);
[[nodiscard]] int rtr_mask(ibv_qp_type type);
[[nodiscard]] int rts_mask(ibv_qp_type type);
/// Takes a queue pair in RESET to a state, RESET included.
void bring_to(const setting& s, ibv_qp* qp, ibv_qp_state state, std::uint32_t peer,
              const connection_options& options = {});
/// In SQD: until the send queue is drained, the only way out is ERR.
void wait_until_drained(const setting& s, ibv_qp* qp);
[[nodiscard]] owned<ibv_qp> make_qp(const setting& s, ibv_cq* cq,
                                    const connection_options& options = {});

/// What ibv_query_qp says.
[[nodiscard]] ibv_qp_state state_of(ibv_qp* qp);
/// The same once it says that, or after the time there is: rxe changes some states on its own.
[[nodiscard]] std::string state_after(const setting& s, ibv_qp* qp, ibv_qp_state expected);
int modify_state(ibv_qp* qp, ibv_qp_state state);

/// A request with one piece of local memory; members may be changed before it is posted.
struct request {
  request(std::uint64_t id, ibv_wr_opcode opcode, std::vector<ibv_sge> pieces);
  request& flags(unsigned more) noexcept;
  request& remote(std::uint64_t address, std::uint32_t rkey) noexcept;
  request& atomic(std::uint64_t address, std::uint32_t rkey, std::uint64_t compare_add,
                  std::uint64_t swap) noexcept;
  request& immediate(std::uint32_t value) noexcept;
  request& datagram(ibv_ah* ah, std::uint32_t qpn, std::uint32_t key = qkey) noexcept;
  /// What ibv_post_send returns.
  int post(ibv_qp* qp);

  ibv_send_wr wr{};
  std::vector<ibv_sge> pieces;
};

int post_receive(ibv_qp* qp, std::uint64_t id, std::vector<ibv_sge> pieces);
int post_receive(ibv_srq* srq, std::uint64_t id, std::vector<ibv_sge> pieces);

}  // namespace conformance
