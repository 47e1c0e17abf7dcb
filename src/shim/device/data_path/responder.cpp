#include "device/data_path/responder.hpp"

#include <algorithm>

#include "core/multicast_membership.hpp"
#include "device/data_path/completion.hpp"
#include "device/data_path/receive_queue.hpp"
#include "device/data_path/send_queue.hpp"
#include "device/events.hpp"
#include "device/queue_pair.hpp"
#include "device/receive.hpp"

namespace ibvxx::shim {
namespace {

[[nodiscard]] bool is_write(ibv_wr_opcode opcode) noexcept {
  return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

[[nodiscard]] bool takes_a_receive(ibv_wr_opcode opcode) noexcept {
  return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND ||
         opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
}

/// The access that a request needs, of the queue pair and of the memory; 0: none.
[[nodiscard]] unsigned needed_access(ibv_wr_opcode opcode) noexcept {
  if (is_write(opcode)) return IBV_ACCESS_REMOTE_WRITE;
  if (is_atomic(opcode)) return IBV_ACCESS_REMOTE_ATOMIC;
  return opcode == IBV_WR_RDMA_READ ? unsigned{IBV_ACCESS_REMOTE_READ} : 0U;
}

/// Refuses a request. UC drops it and continues; the others enter ERR (measured).
response refuse_request(session_state& state, sim_qp& qp, ibv_wc_status refusal) {
  if (qp.verbs.qp_type == IBV_QPT_UC) return {};
  enter_error(state, qp);
  if (qp.context->behaviour().raises_responder_errors)
    raise_qp_event(
        qp, refusal == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
  return {.kind = reply::refused, .refusal = refusal};
}

/// Changes 8 bytes atomically, also for other processes of the machine. Returns their previous
/// value.
[[nodiscard]] std::uint64_t carry_out_atomic(const message& m, const segment& remote) noexcept {
  if (!remote.bytes) return 0;
  // The address is a multiple of 8, which the poster or respond() has checked. The compiler's own
  // functions, since libc++ has std::atomic_ref only from 19 on.
  auto* const word = reinterpret_cast<std::uint64_t*>(remote.bytes);
  if (m.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
    return __atomic_fetch_add(word, m.compare_or_add, __ATOMIC_SEQ_CST);
  std::uint64_t before = m.compare_or_add;
  __atomic_compare_exchange_n(word, &before, m.swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return before;
}

/// Whether the responder refuses the packets of a write because of their length: the path MTUs
/// differ, and the write is longer than the smaller. Each packet but the last must have the
/// responder's MTU. Sends are accepted in packets of any length (rxe_resp.c; measured).
[[nodiscard]] bool is_miscut(const sim_qp& qp, const message& m) noexcept {
  return path_mtu(qp) != m.path_mtu && m.length > std::min(path_mtu(qp), m.path_mtu);
}

[[nodiscard]] bool can_talk(ibv_qp_type from, ibv_qp_type to) noexcept {
  return from == IBV_QPT_XRC_SEND ? to == IBV_QPT_XRC_RECV : from == to;
}

/// Whether the queue pair takes packets from where the message comes from (rxe: check_addr).
[[nodiscard]] bool expects(const sim_qp& qp, const message& m) noexcept {
  const ibv_ah_attr& back = qp.attr.ah_attr;
  if (m.is_global) return back.is_global != 0 && same_gid(back.grh.dgid, m.source_gid);
  return back.dlid == m.source_lid;
}

[[nodiscard]] bool is_receiving(ibv_qp_state state) noexcept {
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
         state == IBV_QPS_SQE;
}

/// The queue pair that a message is for, or null.
[[nodiscard]] sim_qp* find_target(sim_device& device, std::uint32_t port,
                                  const message& m) noexcept {
  sim_qp* const qp = device.qps.find_qp(m.destination_qp);
  const bool takes = qp && can_talk(m.transport, qp->verbs.qp_type) && is_receiving(qp->state()) &&
                     qp->attr.port_num == port && expects(*qp, m);
  return takes ? qp : nullptr;
}

/// A message's packet number compared with the one that the responder expects.
enum class sequence : std::uint8_t { expected, repeated, wrong };

/// The responder accepts the message with the expected packet number. It takes one that ends just
/// before that for a repetition of the last message, and acknowledges it without carrying it out,
/// unless the response has data. It drops every other message (measured).
[[nodiscard]] sequence place_of(const sim_qp& qp, const message& m) noexcept {
  if (qp.attr.rq_psn == m.psn) return sequence::expected;
  std::uint32_t end = m.psn;
  advance(end, m.packets);
  const bool last = end == qp.attr.rq_psn;
  return last && !is_answered_with_data(m.opcode) ? sequence::repeated : sequence::wrong;
}

/// The response of a queue pair that has no receive.
[[nodiscard]] response not_ready(const sim_qp& qp) noexcept {
  return {.kind = reply::not_ready, .queue = qp.srq ? qp.srq->verbs.handle : 0};
}

response meet_receive(session_state& state, sim_qp& qp, const message& m) {
  switch (receive(state, qp, m)) {
    case arrival::taken:
      return {.kind = reply::acknowledged};
    case arrival::nothing_posted:
      return not_ready(qp);
    case arrival::completion_lost:
      advance(qp.attr.rq_psn, m.packets);
      return {};  // it enters ERR without an answer (measured)
    case arrival::too_long:
      return {.kind = reply::refused, .refusal = qp.context->behaviour().message_too_long};
    case arrival::failed:
      break;
  }
  return {.kind = reply::refused, .refusal = IBV_WC_REM_OP_ERR};
}

/// A message in sequence.
response carry_out(session_state& state, sim_qp& qp, const message& m) {
  if (qp.context->behaviour().raises_comm_est && qp.state() == IBV_QPS_RTR && !qp.established) {
    qp.established = true;
    raise_qp_event(qp, IBV_EVENT_COMM_EST);
  }
  const unsigned access = needed_access(m.opcode);
  if (access != 0 && (qp.attr.qp_access_flags & access) == 0)
    return refuse_request(state, qp, IBV_WC_REM_INV_REQ_ERR);
  const bool atomic = is_atomic(m.opcode);
  if (is_answered_with_data(m.opcode) && qp.attr.max_dest_rd_atomic == 0)
    return refuse_request(state, qp, IBV_WC_REM_INV_REQ_ERR);
  if (atomic && m.remote_address % 8 != 0) return refuse_request(state, qp, IBV_WC_REM_INV_REQ_ERR);
  // A send takes its receive with the first packet, a write with immediate with the last.
  const bool takes = takes_a_receive(m.opcode);
  const bool takes_first = takes && (m.packets == 1 || !is_write(m.opcode));
  const bool ready = !takes || can_receive(qp, m.remote_srq);
  if (takes_first && !ready) return not_ready(qp);
  const auto refuse_write = [&](ibv_wc_status refusal) {
    if (takes_first && qp.verbs.qp_type != IBV_QPT_UC) fail_receive(state, qp, m, refusal);
    return refuse_request(state, qp, refusal);
  };
  // A request of 0 bytes needs no valid key (measured).
  segment remote{nullptr, 0};
  const std::uint64_t length = atomic ? sizeof(std::uint64_t) : m.length;
  if (access != 0 && length != 0 &&
      find_remote(*qp.context->device, qp, m.rkey, m.remote_address, length, access, remote) !=
          memory_fault::none)
    return refuse_write(IBV_WC_REM_ACCESS_ERR);
  if (is_write(m.opcode) && is_miscut(qp, m)) return refuse_write(IBV_WC_REM_INV_REQ_ERR);
  if (atomic && remote.bytes && reinterpret_cast<std::uintptr_t>(remote.bytes) % 8 != 0)
    return refuse_request(state, qp, IBV_WC_REM_INV_REQ_ERR);
  if (atomic) return {.kind = reply::acknowledged, .original = carry_out_atomic(m, remote)};
  if (m.opcode == IBV_WR_RDMA_READ) return {.kind = reply::acknowledged, .data = remote};
  if (is_write(m.opcode)) {
    if (!ready) remote.length = (m.packets - 1) * m.path_mtu;  // all but the last (measured)
    copy(m.payload, remote);
  }
  if (!ready) return not_ready(qp);
  return takes ? meet_receive(state, qp, m) : response{.kind = reply::acknowledged};
}

/// Accepts a datagram if the queue pair is in a receiving state and the Q_Key matches; otherwise
/// drops it.
void take_datagram(session_state& state, sim_qp& qp, const message& m) {
  if (qp.verbs.qp_type != IBV_QPT_UD || qp.attr.qkey != m.qkey || !is_receiving(qp.state())) return;
  static_cast<void>(receive(state, qp, m));
}

}  // namespace

response respond(session_state& state, sim_device& device, std::uint32_t port,
                 const message& arriving) {
  response answer;
  sim_qp* const qp = find_target(device, port, arriving);
  if (!qp) return answer;
  if (arriving.transport == IBV_QPT_UC) {
    // A message's first packet is taken whatever its number, and sets the sequence (measured).
    qp->attr.rq_psn = arriving.psn;
    static_cast<void>(carry_out(state, *qp, arriving));
    advance(qp->attr.rq_psn, arriving.packets);
    return answer;
  }
  // Acknowledgements are sent to the queue pair that this one is connected to.
  const bool heard = qp->attr.dest_qp_num == arriving.source_qp;
  const sequence place = place_of(*qp, arriving);
  if (place == sequence::repeated && heard) answer.kind = reply::acknowledged;
  if (place != sequence::expected) return answer;
  // A read's data is not sent if it has more packets than the request has numbers for (measured).
  if (arriving.opcode == IBV_WR_RDMA_READ &&
      packets_of(arriving.opcode, arriving.length, path_mtu(*qp)) > arriving.packets)
    return answer;
  answer = carry_out(state, *qp, arriving);
  if (answer.kind == reply::acknowledged) {
    advance(qp->attr.rq_psn, arriving.packets);
    wake_senders_to(state, qp->verbs.qp_num);  // one may have waited for this number
  }
  if (!heard) answer.kind = reply::none;
  return answer;
}

void receive_datagram(session_state& state, sim_device& device, std::uint32_t port,
                      const message& arriving) {
  sim_qp* const qp = device.qps.find_qp(arriving.destination_qp);
  if (qp && qp->attr.port_num == port) take_datagram(state, *qp, arriving);
}

void receive_multicast(session_state& state, sim_device& device, const ibv_gid& group,
                       const message& arriving) {
  const auto members = device.multicast_groups.find(key_of(group));
  if (members == device.multicast_groups.end()) return;
  for (sim_qp* const member : members->second) {
    const port_description* port = find_port(device, member->attr.port_num);
    if (port && port->state == IBV_PORT_ACTIVE) take_datagram(state, *member, arriving);
  }
}

}  // namespace ibvxx::shim
