#include "data_responder.hpp"

#include <algorithm>
#include <cstring>

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

/// Hardware tells the responder's side of an error by an event; Soft-RoCE says nothing (measured).
void tell(sim_qp& peer, ibv_event_type type) {
  if (peer.context->as_hardware()) raise_qp_event(peer, type);
}

/// The responder refuses a request. UC drops it and goes on; the others break (measured).
reply refuse(session_state& state, sim_qp& peer, reply answer) {
  if (peer.verbs.qp_type == IBV_QPT_UC) return answer;
  enter_error(state, peer);
  tell(peer, answer == reply::access_violation ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
  return answer;
}

/// The flag makes the list of pieces mean something else, so that an answer finds no place
/// (measured).
[[nodiscard]] bool is_inline(const send_request& request) noexcept {
  return (request.flags & IBV_SEND_INLINE) != 0 && request.length != 0;
}

reply read(sim_qp& qp, const send_request& request, const segment& remote) {
  segment_list target;
  if (is_inline(request)) return reply::local_fault;
  if (find_local(*qp.context->device, qp.domain, request.sges, request.sge_count, true, target) !=
      memory_fault::none)
    return reply::local_fault;
  copy(remote, target);
  return reply::executed;
}

/// 8 bytes at once, as seen by everybody on this machine.
reply change(sim_qp& qp, const send_request& request, const segment& remote) {
  std::uint64_t before = 0;
  if (remote.bytes) {
    // The address is a multiple of 8: so say the checks of the poster or of respond(). The
    // compiler's own functions, since libc++ has std::atomic_ref only from 19 on.
    auto* const word = reinterpret_cast<std::uint64_t*>(remote.bytes);
    if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      before = __atomic_fetch_add(word, request.compare_or_add, __ATOMIC_SEQ_CST);
    } else {
      before = request.compare_or_add;
      __atomic_compare_exchange_n(word, &before, request.swap, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST);
    }
  }
  segment_list target;
  if (is_inline(request)) return reply::local_fault;
  if (find_local(*qp.context->device, qp.domain, request.sges, request.sge_count, true, target,
                 sizeof before) != memory_fault::none)
    return reply::local_fault;
  copy(segment{reinterpret_cast<std::byte*>(&before), sizeof before}, target);
  return reply::executed;
}

/// A write that is longer than the smaller path MTU of two that differ is cut into packets that the
/// other side does not expect: each but the last must be as long as its own MTU. Sends are taken
/// however they are cut (rxe_resp.c; measured).
[[nodiscard]] bool is_miscut(const sim_qp& peer, const sim_qp& qp, std::uint64_t length) noexcept {
  return peer.attr.path_mtu != qp.attr.path_mtu && length > std::min(path_mtu(peer), path_mtu(qp));
}

reply meet_receive(session_state& state, sim_qp& peer, const send_request& request,
                   const segment_list& payload) {
  // Soft-RoCE has a GRH with everything (measured).
  const unsigned flags = peer.context->as_hardware() ? 0U : unsigned{IBV_WC_GRH};
  switch (receive(state, peer, {payload, request.length, request, 0, flags})) {
    case arrival::taken:
      return reply::executed;
    case arrival::nothing_posted:
      return reply::not_ready;
    case arrival::completion_lost:
      return reply::executed_no_answer;
    case arrival::too_long:
      return peer.context->as_hardware() ? reply::invalid_request : reply::operation_failed;
    case arrival::broken:
      break;
  }
  return reply::operation_failed;
}

}  // namespace

reply respond(session_state& state, sim_qp& peer, sim_qp& qp, const send_request& request,
              const segment_list& local) {
  const bool hardware = peer.context->as_hardware();
  if (hardware && peer.state() == IBV_QPS_RTR && !peer.established) {
    peer.established = true;
    raise_qp_event(peer, IBV_EVENT_COMM_EST);
  }
  const unsigned access = needed_access(request.opcode);
  if (access != 0 && (peer.attr.qp_access_flags & access) == 0)
    return refuse(state, peer, reply::invalid_request);
  const bool atomic = is_atomic(request.opcode);
  if ((atomic || request.opcode == IBV_WR_RDMA_READ) && peer.attr.max_dest_rd_atomic == 0)
    return refuse(state, peer, reply::invalid_request);
  if (atomic && request.remote_address % 8 != 0) return refuse(state, peer, reply::invalid_request);
  // A send takes its receive with the first packet, a write with immediate with the last.
  const std::uint32_t count = packets(qp, request);
  const bool takes = takes_a_receive(request.opcode);
  const bool takes_first = takes && (count == 1 || !is_write(request.opcode));
  const bool ready = !takes || can_receive(peer, request.remote_srq);
  if (takes_first && !ready) return reply::not_ready;
  const auto fail_write = [&](reply answer, ibv_wc_status status) {
    if (takes_first && peer.verbs.qp_type != IBV_QPT_UC) fail_receive(state, peer, request, status);
    return refuse(state, peer, answer);
  };
  // What moves no byte needs no key (measured).
  segment remote{nullptr, 0};
  const std::uint64_t length = atomic ? sizeof(std::uint64_t) : request.length;
  if (access != 0 && length != 0 &&
      find_remote(*peer.context->device, peer, request.rkey, request.remote_address, length, access,
                  remote) != memory_fault::none)
    return fail_write(reply::access_violation, IBV_WC_REM_ACCESS_ERR);
  if (is_write(request.opcode) && is_miscut(peer, qp, length))
    return fail_write(reply::invalid_request, IBV_WC_REM_INV_REQ_ERR);
  if (atomic && remote.bytes && reinterpret_cast<std::uintptr_t>(remote.bytes) % 8 != 0)
    return refuse(state, peer, reply::invalid_request);
  if (atomic) return change(qp, request, remote);
  if (request.opcode == IBV_WR_RDMA_READ) return read(qp, request, remote);
  if (is_write(request.opcode)) {
    if (!ready) remote.length = (count - 1) * path_mtu(qp);  // all but the last packet (measured)
    copy(local, remote);
  }
  if (!ready) return reply::not_ready;
  return takes ? meet_receive(state, peer, request, local) : reply::executed;
}

}  // namespace ibvxx::shim
