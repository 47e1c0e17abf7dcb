#include "device/data_path/requester.hpp"

#include <cstddef>

#include "device/data_path/completion.hpp"
#include "device/data_path/datagram.hpp"
#include "device/data_path/memory.hpp"
#include "device/data_path/responder.hpp"
#include "device/data_path/route.hpp"
#include "device/data_path/send_queue.hpp"
#include "device/data_path/window.hpp"
#include "device/data_path/wire.hpp"

namespace ibvxx::shim {
namespace {

constexpr std::uint64_t longest_message = std::uint64_t{1} << 31;  // IBA 9.7.7: 2^31 bytes

/// Whether a type of queue pair supports an opcode (rxe_opcode.c; measured).
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

/// The status of a completion for a fault in local memory.
[[nodiscard]] ibv_wc_status local_status(const sim_qp& qp, memory_fault fault) noexcept {
  return fault == memory_fault::key ? qp.context->behaviour().unknown_lkey : IBV_WC_LOC_PROT_ERR;
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

/// The message that a request becomes.
[[nodiscard]] message make_message(const sim_qp& qp, const send_request& request,
                                   const segment_list& payload) noexcept {
  const ibv_ah_attr& address = qp.attr.ah_attr;
  const std::uint64_t mtu = path_mtu(qp);
  const bool is_global = address.is_global != 0;
  return {.payload = payload,
          .length = request.length,
          .transport = qp.verbs.qp_type,
          .source_qp = qp.verbs.qp_num,
          .destination_qp = qp.attr.dest_qp_num & 0xffffff,
          .is_global = is_global,
          .source_gid = is_global ? source_gid(*qp.context, address) : ibv_gid{},
          .source_lid = is_global ? std::uint16_t{0} : source_lid(*qp.context, address),
          .psn = qp.attr.sq_psn,
          .packets = packets_of(request.opcode, request.length, mtu),
          .path_mtu = mtu,
          .opcode = request.opcode,
          .solicited = (request.flags & IBV_SEND_SOLICITED) != 0,
          .immediate = request.immediate,
          .remote_address = request.remote_address,
          .rkey = request.rkey,
          .compare_or_add = request.compare_or_add,
          .swap = request.swap,
          .remote_srq = request.remote_srq,
          .qkey = 0};
}

/// Sends a message and returns what comes back.
[[nodiscard]] response exchange(session_state& state, sim_qp& qp, const message& m) {
  const destination there = route(state, *qp.context, qp.attr.ah_attr, qp.peer_hint);
  return there.device ? respond(state, *there.device, there.port, m) : response{};
}

/// Puts the data of a response into the request's memory; false where it does not fit. With
/// IBV_SEND_INLINE the SGEs are data, so a response has nowhere to be written (measured).
[[nodiscard]] bool place_response(const sim_qp& qp, const send_request& request,
                                  const response& answer) {
  if ((request.flags & IBV_SEND_INLINE) != 0 && request.length != 0) return false;
  const bool atomic = is_atomic(request.opcode);
  std::uint64_t original = answer.original;
  segment_list target;
  if (find_local(*qp.context->device, qp.domain, request.sges, request.sge_count, true, target,
                 atomic ? sizeof original : UINT64_MAX) != memory_fault::none)
    return false;
  copy(atomic ? segment{reinterpret_cast<std::byte*>(&original), sizeof original} : answer.data,
       target);
  return true;
}

/// RC and XRC.
progress execute_acknowledged(session_state& state, sim_qp& qp, const send_request& request) {
  const bool reads = is_answered_with_data(request.opcode);
  segment_list local;
  if (!reads) {
    const memory_fault fault = gather(qp, request, local);
    if (fault != memory_fault::none) return fail(state, qp, request, local_status(qp, fault));
  } else if (qp.attr.max_rd_atomic == 0) {
    return progress::waiting;  // for ever: no read may be outstanding (measured)
  }
  const message sent = make_message(qp, request, local);
  const response answer = exchange(state, qp, sent);
  switch (answer.kind) {
    case reply::none:
      return unanswered(state, qp, request);
    case reply::not_ready:
      // rnr_retry 7 is without end. Otherwise the retries are used up at once: time is virtual.
      if (qp.attr.rnr_retry == 7) {
        qp.awaited = sent.transport == IBV_QPT_XRC_SEND ? xrc_queue_key(sent.remote_srq)
                     : answer.queue != 0                ? shared_queue_key(answer.queue)
                                                        : 0;
        qp.waits_behind_memory = sent.packets > 1 && request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
        return progress::waiting;
      }
      return fail(state, qp, request, IBV_WC_RNR_RETRY_EXC_ERR);
    case reply::refused:
      return fail(state, qp, request, answer.refusal);
    case reply::acknowledged:
      break;
  }
  advance(qp.attr.sq_psn, sent.packets);
  if (reads && !place_response(qp, request, answer))
    return fail(state, qp, request, IBV_WC_LOC_PROT_ERR);
  return succeed(state, qp, request);
}

/// UC: the responder sends no response.
progress execute_unacknowledged(session_state& state, sim_qp& qp, const send_request& request) {
  segment_list local;
  const memory_fault fault = gather(qp, request, local);
  if (fault != memory_fault::none) return fail(state, qp, request, local_status(qp, fault));
  const message sent = make_message(qp, request, local);
  static_cast<void>(exchange(state, qp, sent));
  advance(qp.attr.sq_psn, sent.packets);
  return succeed(state, qp, request);
}

progress execute_datagram(session_state& state, sim_qp& qp, const send_request& request) {
  segment_list local;
  const memory_fault fault = gather(qp, request, local);
  if (fault != memory_fault::none) return fail(state, qp, request, local_status(qp, fault));
  const port_description* port = find_port(*qp.context->device, qp.attr.port_num);
  // IBA C10-93.1.1: a datagram longer than the port's MTU is not sent, and completes with success
  // (measured).
  if (port && request.length <= std::uint64_t{128} << port->active_mtu)
    send_datagram(state, qp, request, local);
  advance(qp.attr.sq_psn, 1);
  return succeed(state, qp, request);
}

}  // namespace

progress execute(session_state& state, sim_qp& qp, const send_request& request) {
  if (completion_rule* rule = state.completions.find(request.rule))
    if (!rule->lost && !rule->after_effect) {
      ++rule->fired;
      return fail(state, qp, request, rule->status);
    }
  // Soft-RoCE's requester does not check the length of a read; the responder does (measured).
  const bool too_long = request.length >= longest_message && request.opcode != IBV_WR_RDMA_READ;
  if (!is_possible(qp.verbs.qp_type, request.opcode) || too_long)
    return fail(state, qp, request, IBV_WC_LOC_QP_OP_ERR);
  if (request.opcode == IBV_WR_LOCAL_INV || request.opcode == IBV_WR_BIND_MW)
    wake_those_behind_memory(state);
  if (request.opcode == IBV_WR_LOCAL_INV)
    return invalidate(*qp.context->device, request.immediate, nullptr)
               ? succeed(state, qp, request)
               : fail(state, qp, request, IBV_WC_LOC_QP_OP_ERR);
  if (request.opcode == IBV_WR_BIND_MW)
    return bind(qp, request) ? succeed(state, qp, request)
                             : fail(state, qp, request, IBV_WC_MW_BIND_ERR);
  const port_description* port = find_port(*qp.context->device, qp.attr.port_num);
  if (qp.context->behaviour().port_down_fails_at_once && port && port->state != IBV_PORT_ACTIVE)
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
