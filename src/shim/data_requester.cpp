// The requester's half: what a queue pair does with a request before anybody else is asked, and
// with the answer.
#include "data_responder.hpp"
#include "fabric.hpp"

namespace ibvxx::shim {
namespace {

constexpr std::uint64_t longest_message = std::uint64_t{1} << 31;  // IBA 9.7.7: 2^31 bytes

/// Which requests a type of queue pair knows (rxe_opcode.c; measured).
[[nodiscard]] bool is_possible(ibv_qp_type type, ibv_wr_opcode opcode) noexcept {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return type != IBV_QPT_RAW_PACKET;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_XRC_SEND;
    case IBV_WR_BIND_MW:
      return type == IBV_QPT_RC || type == IBV_QPT_UC;
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_LOCAL_INV:
    case IBV_WR_SEND_WITH_INV:
      return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
    default:
      return false;
  }
}

/// The status for what is wrong with local memory. Soft-RoCE tells a key that it does not know from
/// bytes that are not the region's (measured); hardware does not.
[[nodiscard]] ibv_wc_status local_status(const sim_qp& qp, memory_fault fault) noexcept {
  const bool unknown = fault == memory_fault::key && !qp.context->as_hardware();
  return unknown ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR;
}

/// The memory that a request sends from. Inline data is what the program pointed at when it posted.
[[nodiscard]] memory_fault gather(sim_qp& qp, const send_request& request, segment_list& found) {
  if ((request.flags & IBV_SEND_INLINE) == 0)
    return find_local(*qp.context->device, qp.domain, request.sges, request.sge_count, false,
                      found);
  for (std::uint32_t i = 0; i < request.sge_count; ++i)
    if (request.sges[i].length != 0)
      found.add({reinterpret_cast<std::byte*>(request.sges[i].addr), request.sges[i].length});
  return memory_fault::none;
}

progress fail(session_state& state, sim_qp& qp, const send_request& request, ibv_wc_status status) {
  fail_send(state, qp, request, status);
  return progress::done;
}

progress succeed(session_state& state, sim_qp& qp, const send_request& request) {
  complete_send(state, qp, request, IBV_WC_SUCCESS);
  return progress::done;
}

/// No answer came: with a timeout of 0 a queue pair waits for one without end, otherwise its
/// retries are used up at once, since time is virtual.
progress unanswered(session_state& state, sim_qp& qp, const send_request& request) {
  if (qp.attr.timeout == 0) return progress::waiting;
  return fail(state, qp, request, IBV_WC_RETRY_EXC_ERR);
}

/// Where a message stands in the peer's sequence.
enum class sequence : std::uint8_t { expected, repeated, wrong };

/// A peer takes what it expects next. The one message that ends just before that it takes for a
/// repetition of the last, and acknowledges it without looking at it, unless it would have to
/// answer with data. Everything else it refuses (measured).
[[nodiscard]] sequence place(const sim_qp& qp, const sim_qp& peer, std::uint32_t count,
                             bool answered_with_data) noexcept {
  constexpr std::uint32_t mask = 0xffffff;
  if (peer.attr.rq_psn == qp.attr.sq_psn) return sequence::expected;
  const bool last = ((qp.attr.sq_psn + count) & mask) == peer.attr.rq_psn;
  return last && !answered_with_data ? sequence::repeated : sequence::wrong;
}

void advance(std::uint32_t& psn, std::uint32_t count) noexcept {
  psn = (psn + count) & 0xffffff;
}

/// RC, and XRC as far as it is the same.
progress execute_acknowledged(session_state& state, sim_qp& qp, const send_request& request) {
  const bool reads = request.opcode == IBV_WR_RDMA_READ || is_atomic(request.opcode);
  segment_list local;
  if (!reads) {
    const memory_fault fault = gather(qp, request, local);
    if (fault != memory_fault::none) return fail(state, qp, request, local_status(qp, fault));
  } else if (qp.attr.max_rd_atomic == 0) {
    return progress::waiting;  // for room that never comes (measured)
  }
  sim_qp* peer = find_peer(state, qp);
  if (!peer) return unanswered(state, qp, request);
  const std::uint32_t count = packets(qp, request);
  switch (place(qp, *peer, count, reads)) {
    case sequence::wrong:
      return unanswered(state, qp, request);
    case sequence::repeated:
      advance(qp.attr.sq_psn, count);
      return succeed(state, qp, request);
    case sequence::expected:
      break;
  }
  // An answer of more packets than there is room for in the sequence is none (measured).
  if (request.opcode == IBV_WR_RDMA_READ && packets(*peer, request) > count)
    return unanswered(state, qp, request);
  // Acknowledgements go to the queue pair that the peer believes to be connected to.
  const bool heard = peer->attr.dest_qp_num == qp.verbs.qp_num;
  const reply answer = respond(state, *peer, qp, request, local);
  if (heard && answer == reply::not_ready) {
    if (qp.attr.rnr_retry == 7) return progress::waiting;
    return fail(state, qp, request, IBV_WC_RNR_RETRY_EXC_ERR);
  }
  if (answer == reply::executed || answer == reply::executed_no_answer) {
    advance(qp.attr.sq_psn, count);
    advance(peer->attr.rq_psn, count);
  }
  if (!heard || answer == reply::executed_no_answer) return unanswered(state, qp, request);
  switch (answer) {
    case reply::executed:
      return succeed(state, qp, request);
    case reply::local_fault:
      return fail(state, qp, request, IBV_WC_LOC_PROT_ERR);
    case reply::invalid_request:
      return fail(state, qp, request, IBV_WC_REM_INV_REQ_ERR);
    case reply::access_violation:
      return fail(state, qp, request, IBV_WC_REM_ACCESS_ERR);
    default:
      return fail(state, qp, request, IBV_WC_REM_OP_ERR);
  }
}

/// UC: whatever happens over there, nobody tells.
progress execute_unacknowledged(session_state& state, sim_qp& qp, const send_request& request) {
  segment_list local;
  const memory_fault fault = gather(qp, request, local);
  if (fault != memory_fault::none) return fail(state, qp, request, local_status(qp, fault));
  const std::uint32_t count = packets(qp, request);
  if (sim_qp* peer = find_peer(state, qp)) {
    // A message's first packet is taken whatever its number, and sets the sequence (measured).
    peer->attr.rq_psn = qp.attr.sq_psn;
    static_cast<void>(respond(state, *peer, qp, request, local));
    advance(peer->attr.rq_psn, count);
  }
  advance(qp.attr.sq_psn, count);
  return succeed(state, qp, request);
}

progress execute_datagram(session_state& state, sim_qp& qp, const send_request& request) {
  segment_list local;
  const memory_fault fault = gather(qp, request, local);
  if (fault != memory_fault::none) return fail(state, qp, request, local_status(qp, fault));
  const port_description* port = find_port(*qp.context->device, qp.attr.port_num);
  // IBA C10-93.1.1: what is longer than the port's MTU is not sent, and that is no error
  // (measured).
  if (port && request.length <= std::uint64_t{128} << port->active_mtu)
    send_datagram(state, qp, request, local);
  advance(qp.attr.sq_psn, 1);
  return succeed(state, qp, request);
}

}  // namespace

std::uint32_t packets(const sim_qp& qp, const send_request& request) noexcept {
  if (is_atomic(request.opcode)) return 1;
  const std::uint64_t mtu = path_mtu(qp);
  return request.length <= mtu ? 1 : static_cast<std::uint32_t>((request.length + mtu - 1) / mtu);
}

progress execute(session_state& state, sim_qp& qp, const send_request& request) {
  if (completion_rule* rule = state.completions.find(request.rule))
    if (!rule->lost && !rule->after_effect) {
      ++rule->fired;
      return fail(state, qp, request, rule->status);
    }
  // Soft-RoCE does not look at how much a read asks for: the responder does (measured).
  const bool too_long = request.length >= longest_message && request.opcode != IBV_WR_RDMA_READ;
  if (!is_possible(qp.verbs.qp_type, request.opcode) || too_long)
    return fail(state, qp, request, IBV_WC_LOC_QP_OP_ERR);
  if (request.opcode == IBV_WR_LOCAL_INV)
    return invalidate(*qp.context->device, request.immediate, nullptr)
               ? succeed(state, qp, request)
               : fail(state, qp, request, IBV_WC_LOC_QP_OP_ERR);
  if (request.opcode == IBV_WR_BIND_MW)
    return bind(qp, request) ? succeed(state, qp, request)
                             : fail(state, qp, request, IBV_WC_MW_BIND_ERR);
  // Without a link Soft-RoCE finds no way to send a packet, and says so at once (measured).
  const port_description* port = find_port(*qp.context->device, qp.attr.port_num);
  if (!qp.context->as_hardware() && port && port->state != IBV_PORT_ACTIVE)
    return fail(state, qp, request, IBV_WC_LOC_QP_OP_ERR);
  switch (qp.verbs.qp_type) {
    case IBV_QPT_UD:
      return execute_datagram(state, qp, request);
    case IBV_QPT_UC:
      return execute_unacknowledged(state, qp, request);
    default:
      return execute_acknowledged(state, qp, request);
  }
}

}  // namespace ibvxx::shim
