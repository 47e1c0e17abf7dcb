// The responder's half of the data path. Everything here needs the session's lock.
#pragma once

#include <cstdint>

#include "data_memory.hpp"
#include "data_path.hpp"

namespace ibvxx::shim {

[[nodiscard]] inline bool is_atomic(ibv_wr_opcode opcode) noexcept {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/// Bytes of a full packet on a queue pair's path.
[[nodiscard]] inline std::uint64_t path_mtu(const sim_qp& qp) noexcept {
  return std::uint64_t{128} << qp.attr.path_mtu;
}
/// Packets that a message takes on that path, each of which has a sequence number.
[[nodiscard]] std::uint32_t packets(const sim_qp& qp, const send_request& request) noexcept;

/// What a responder makes of a message.
enum class reply : std::uint8_t {
  executed,
  executed_no_answer,  ///< but its completion was lost: it broke without an answer (measured)
  not_ready,           ///< no receive is posted
  local_fault,         ///< the data of a read or atomic does not fit the requester's memory
  invalid_request,     ///< the responder broke
  access_violation,    ///< the responder broke
  operation_failed,    ///< the responder broke
};

/// A message from `qp` arrives at `peer`, in sequence. `local` is what a send or write carries.
[[nodiscard]] reply respond(session_state& state, sim_qp& peer, sim_qp& qp,
                            const send_request& request, const segment_list& local);

/// A datagram goes to where its address leads, or is lost (data_datagram.cpp).
void send_datagram(session_state& state, sim_qp& qp, const send_request& request,
                   const segment_list& local);

/// A message for the receive queue of a queue pair.
struct message {
  const segment_list& payload;
  std::uint64_t length;  // of the payload
  const send_request& request;
  std::uint32_t source_qp = 0;
  unsigned flags = 0;  // of its completion, besides what the request itself brings
};

/// What came of a message that met a receive queue.
enum class arrival : std::uint8_t { taken, nothing_posted, too_long, broken, completion_lost };

/// Whether a receive is posted for a message that may name an SRQ.
[[nodiscard]] bool can_receive(sim_qp& qp, std::uint32_t srq_number) noexcept;
/// Completes the next receive, which `request` would have taken, with an error, and the queue pair
/// breaks.
void fail_receive(session_state& state, sim_qp& qp, const send_request& request,
                  ibv_wc_status status);
/// Takes the next receive, copies, and completes. Where that goes wrong the queue pair breaks.
[[nodiscard]] arrival receive(session_state& state, sim_qp& qp, const message& arriving);

/// Carries out IBV_WR_BIND_MW; false where the window, the region or the range is not right.
[[nodiscard]] bool bind(sim_qp& qp, const send_request& request) noexcept;
/// Takes the access of a window of type 2 away, by its key; false where there is none. `through`:
/// the queue pair that a remote request came through, which must be the window's.
[[nodiscard]] bool invalidate(sim_device& device, std::uint32_t rkey,
                              const sim_qp* through) noexcept;

}  // namespace ibvxx::shim
