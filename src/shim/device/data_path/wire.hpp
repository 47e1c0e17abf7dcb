// What the requester and the responder exchange. Header only.
//
// Values, and bytes that are borrowed until the exchange is over: neither half holds a pointer to
// an object of the other, so the responder may run in another process.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "device/data_path/memory.hpp"

namespace ibvxx::shim {

/// A message as it arrives at the responder.
struct message {
  const segment_list& payload;  // what a send or write carries; of a datagram, its GRH first
  std::uint64_t length;         // of the payload, or what a read asks for
  ibv_qp_type transport;        // of the requester
  std::uint32_t source_qp;
  std::uint32_t destination_qp;  // 24 bits
  bool is_global;                // it has a GRH
  ibv_gid source_gid;            // with a GRH
  std::uint16_t source_lid;      // without
  std::uint32_t psn;             // of its first packet
  std::uint32_t packets;         // at the requester's path MTU
  std::uint64_t path_mtu;        // in bytes
  ibv_wr_opcode opcode;
  bool solicited;
  std::uint32_t immediate;  // immediate data or a key to invalidate, as the program gave it
  std::uint64_t remote_address;
  std::uint32_t rkey;
  std::uint64_t compare_or_add;
  std::uint64_t swap;
  std::uint32_t remote_srq;  // XRC
  std::uint32_t qkey;        // datagrams
};

enum class reply : std::uint32_t {
  none,          ///< nothing comes back
  acknowledged,  ///< carried out, or taken for a repetition of what was
  not_ready,     ///< no receive is posted (RNR NAK)
  refused,       ///< the responder's queue pair is in ERR (NAK)
};

/// The responder's answer.
struct response {
  reply kind = reply::none;
  ibv_wc_status refusal = IBV_WC_SUCCESS;  ///< of the requester's completion, where refused
  segment data{nullptr, 0};                ///< what a read returns
  std::uint64_t original = 0;              ///< what was in memory before an atomic
  std::uint32_t queue = 0;                 ///< where not ready: the handle of the SRQ without a
                                           ///< receive; 0: the queue pair's own queue
};

[[nodiscard]] inline bool is_atomic(ibv_wr_opcode opcode) noexcept {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
/// The response carries data.
[[nodiscard]] inline bool is_answered_with_data(ibv_wr_opcode opcode) noexcept {
  return opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
}
/// The packets that a message of `length` bytes takes, each of which has a sequence number.
[[nodiscard]] inline std::uint32_t packets_of(ibv_wr_opcode opcode, std::uint64_t length,
                                              std::uint64_t mtu) noexcept {
  if (is_atomic(opcode) || length <= mtu) return 1;
  return static_cast<std::uint32_t>((length + mtu - 1) / mtu);
}
/// A packet sequence number has 24 bits.
inline void advance(std::uint32_t& psn, std::uint32_t count) noexcept {
  psn = (psn + count) & 0xffffff;
}

}  // namespace ibvxx::shim
