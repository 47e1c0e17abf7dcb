#include "device/data_path/receive_queue.hpp"

#include <algorithm>

#include "device/data_path/completion.hpp"
#include "device/data_path/memory.hpp"
#include "device/data_path/send_queue.hpp"
#include "device/data_path/window.hpp"
#include "device/events.hpp"
#include "device/receive.hpp"

namespace ibvxx::shim {
namespace {

/// The queue that a message takes its receive from, and where that completes.
struct receive_queue {
  request_queue<receive_request>* requests = nullptr;
  const void* domain = nullptr;
  sim_cq* cq = nullptr;
  sim_srq* srq = nullptr;
};

[[nodiscard]] receive_queue find_queue(sim_qp& qp, std::uint32_t srq_number) noexcept {
  if (qp.verbs.qp_type == IBV_QPT_XRC_RECV) {
    sim_srq* srq = qp.context->device->srqs.find_srq(srq_number);
    if (!srq || srq->xrc_domain != qp.xrc_domain) return {};
    return {&srq->receives, srq->domain, srq->cq, srq};
  }
  if (qp.srq) return {&qp.srq->receives, qp.srq->domain, qp.recv_cq, qp.srq};
  return {&qp.receives, qp.domain, qp.recv_cq, nullptr};
}

/// Called after a receive was taken from an SRQ: raises the event for its limit, once.
void watch_limit(sim_srq& srq) {
  if (srq.attr.srq_limit == 0 || srq.receives.size() >= srq.attr.srq_limit) return;
  srq.attr.srq_limit = 0;
  raise_srq_event(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

/// Copies the packets that fit, of a message that does not (measured): the header of a datagram, or
/// as many whole MTUs of another message as there is space for.
void copy_head(const sim_qp& qp, const message& arriving, std::uint64_t room,
               const segment_list& target) {
  constexpr std::uint64_t datagram_header = 40;
  const std::uint64_t mtu = path_mtu(qp);
  const bool datagram = qp.verbs.qp_type == IBV_QPT_UD;
  std::uint64_t left = datagram ? (room < datagram_header ? 0 : datagram_header) : room / mtu * mtu;
  segment_list head;
  for (std::size_t i = 0; i < arriving.payload.size() && left != 0; ++i) {
    const segment& one = arriving.payload[i];
    head.add({one.bytes, std::min(left, one.length)});
    left -= std::min(left, one.length);
  }
  copy(head, target);
}

}  // namespace

bool can_receive(sim_qp& qp, std::uint32_t srq_number) noexcept {
  const receive_queue queue = find_queue(qp, srq_number);
  return queue.requests && !queue.requests->empty();
}

void fail_receive(session_state& state, sim_qp& qp, const message& arriving, ibv_wc_status status) {
  const receive_queue queue = find_queue(qp, arriving.remote_srq);
  if (!queue.requests || !queue.cq) return;  // the caller has found a receive there
  completion done{};
  done.wc.wr_id = queue.requests->front().wr_id;
  done.wc.status = status;
  done.wc.qp_num = qp.verbs.qp_num;
  queue.requests->pop();
  const bool solicited = qp.context->behaviour().errors_are_solicited || arriving.solicited;
  complete(state, *queue.cq, done, solicited);
  if (queue.srq) watch_limit(*queue.srq);
  enter_error(state, qp);
}

arrival receive(session_state& state, sim_qp& qp, const message& arriving) {
  const receive_queue queue = find_queue(qp, arriving.remote_srq);
  if (!queue.requests || queue.requests->empty()) return arrival::nothing_posted;
  completion_rule* rule = nullptr;
  if (!state.completions.empty()) [[unlikely]]
    rule = state.completions.find(state.completions.decide(&qp, true, arriving.opcode));
  if (rule) ++rule->fired;
  if (rule && !rule->lost) {
    fail_receive(state, qp, arriving, rule->status);
    return arrival::failed;
  }
  const device_behaviour& behaviour = qp.context->behaviour();
  const bool datagram = qp.verbs.qp_type == IBV_QPT_UD;
  const receive_request& posted = queue.requests->front();
  const bool has_data = arriving.opcode != IBV_WR_RDMA_WRITE_WITH_IMM;
  completion done{};
  done.wc.wr_id = posted.wr_id;
  done.wc.qp_num = qp.verbs.qp_num;
  if (has_data && arriving.length != 0) {
    std::uint64_t room = 0;
    for (const ibv_sge& one : posted.sges) room += one.length;
    segment_list target;
    const memory_fault fault = find_local(*qp.context->device, queue.domain, posted.sges.data(),
                                          posted.sges.size(), true, target, arriving.length);
    const bool too_long = room < arriving.length;
    if (!too_long && fault == memory_fault::none) {
      copy(arriving.payload, target);
    } else {
      if (fault == memory_fault::none) copy_head(qp, arriving, room, target);
      fail_receive(state, qp, arriving,
                   too_long ? behaviour.receive_too_short : behaviour.receive_memory_fault);
      return too_long ? arrival::too_long : arrival::failed;
    }
  }
  const bool invalidates = arriving.opcode == IBV_WR_SEND_WITH_INV;
  if (invalidates) wake_those_behind_memory(state);
  if (invalidates && !invalidate(*qp.context->device, arriving.immediate, &qp)) {
    // The sender gets an acknowledgement: its data has arrived (measured).
    fail_receive(state, qp, arriving, IBV_WC_REM_INV_REQ_ERR);
    return arrival::taken;
  }
  const bool immediate =
      arriving.opcode == IBV_WR_SEND_WITH_IMM || arriving.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  done.wc.opcode = has_data ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  done.wc.byte_len = static_cast<std::uint32_t>(arriving.length);
  done.wc.src_qp = datagram ? arriving.source_qp : 0;
  const bool grh = datagram ? arriving.is_global : behaviour.receive_always_has_grh_flag;
  done.wc.wc_flags = grh ? unsigned{IBV_WC_GRH} : 0U;
  if (immediate) {
    done.wc.wc_flags |= IBV_WC_WITH_IMM;
    done.wc.imm_data = arriving.immediate;
  } else if (invalidates) {
    done.wc.wc_flags |= IBV_WC_WITH_INV;
    done.wc.invalidated_rkey = arriving.immediate;
  }
  queue.requests->pop();
  const bool kept = (rule && rule->lost) || complete(state, *queue.cq, done, arriving.solicited);
  if (queue.srq) watch_limit(*queue.srq);
  if (kept) return arrival::taken;
  // A responder that cannot complete what it received enters ERR (measured).
  enter_error(state, qp);
  return arrival::completion_lost;
}

}  // namespace ibvxx::shim
