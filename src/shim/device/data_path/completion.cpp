#include "device/data_path/completion.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "device/data_path/send_queue.hpp"
#include "device/events.hpp"
#include "device/misuse.hpp"

namespace ibvxx::shim {
namespace {

[[nodiscard]] ibv_wc_opcode completed_as(ibv_wr_opcode opcode) noexcept {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    default:
      return IBV_WC_SEND;
  }
}

[[nodiscard]] bool has_immediate(ibv_wr_opcode opcode) noexcept {
  return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

void flush_sends(session_state& state, sim_qp& qp) {
  // execute() completes the request that it carries out itself.
  const std::size_t kept = qp.first_is_running ? 1 : 0;
  for (std::size_t i = kept; i < qp.sends.size(); ++i)
    complete_send(state, qp, qp.sends[i].request, IBV_WC_WR_FLUSH_ERR);
  qp.sends.truncate(kept);
}

}  // namespace

bool complete(session_state& state, sim_cq& cq, const completion& done, bool solicited) {
  if (cq.hold != 0) [[unlikely]] {
    cq.held.push_back({done, solicited});
    ++state.completions.held(cq.hold).held;
    return true;
  }
  if (cq.entries.size() >= static_cast<std::size_t>(cq.verbs.cqe)) {
    if (!cq.ignores_overrun) {
      // Every completion that is lost raises the event; the queue stays usable (measured).
      ibv_async_event event{};
      event.event_type = IBV_EVENT_CQ_ERR;
      event.element.cq = &cq.verbs;
      raise_async_event(*cq.context, event);
      find_undersized_queue(state, cq, done.wc);
      return false;
    }
    cq.entries.pop();  // the oldest is overwritten
  }
  completion& kept = cq.entries.append();
  kept = done;
  kept.time = state.calls;
  notify(cq, solicited);
  return true;
}

void complete_send(session_state& state, sim_qp& qp, const send_request& request,
                   ibv_wc_status status) {
  const device_behaviour& behaviour = qp.context->behaviour();
  completion_rule* rule = status == IBV_WC_SUCCESS ? state.completions.find(request.rule) : nullptr;
  if (rule && !rule->lost) {
    ++rule->fired;
    return fail_send(state, qp, request, rule->status);
  }
  if (behaviour.slots_free_when_polled) ++qp.unreclaimed;
  const bool signaled = qp.signal_all || (request.flags & IBV_SEND_SIGNALED) != 0;
  if (status == IBV_WC_SUCCESS && !signaled) return;
  if (rule) {
    ++rule->fired;
    return;
  }
  completion done{};
  done.wc.wr_id = request.wr_id;
  done.wc.status = status;
  done.wc.qp_num = qp.verbs.qp_num;
  if (status == IBV_WC_SUCCESS) {
    done.wc.opcode = completed_as(request.opcode);
    done.wc.byte_len = static_cast<std::uint32_t>(request.length);
    if (behaviour.send_completion_has_imm_flag && has_immediate(request.opcode))
      done.wc.wc_flags = IBV_WC_WITH_IMM;
  }
  if (behaviour.slots_free_when_polled) {
    done.qp = &qp;
    done.gives_back = std::exchange(qp.unreclaimed, 0);
  }
  complete(state, *qp.send_cq, done, behaviour.errors_are_solicited && status != IBV_WC_SUCCESS);
}

void fail_send(session_state& state, sim_qp& qp, const send_request& request,
               ibv_wc_status status) {
  complete_send(state, qp, request, status);
  const bool stops = qp.context->behaviour().unconnected_qp_enters_sqe &&
                     (qp.verbs.qp_type == IBV_QPT_UD || qp.verbs.qp_type == IBV_QPT_UC);
  if (!stops) return enter_error(state, qp);
  qp.attr.qp_state = IBV_QPS_SQE;
  stop_waiting(state, qp);
  flush_sends(state, qp);
}

void flush_receives(session_state& state, sim_qp& qp) {
  while (!qp.receives.empty()) {
    completion done{};
    done.wc.wr_id = qp.receives.front().wr_id;
    done.wc.status = IBV_WC_WR_FLUSH_ERR;
    done.wc.qp_num = qp.verbs.qp_num;
    qp.receives.pop();
    complete(state, *qp.recv_cq, done, true);
  }
}

void enter_error(session_state& state, sim_qp& qp) {
  if (qp.state() == IBV_QPS_ERR) return;
  qp.attr.qp_state = IBV_QPS_ERR;
  qp.attr.sq_draining = 0;
  stop_waiting(state, qp);
  flush_sends(state, qp);
  flush_receives(state, qp);
  wake_senders_to(state, qp.verbs.qp_num);
  if (qp.srq && qp.context->behaviour().raises_last_wqe_reached)
    raise_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void raise_drained(sim_qp& qp) {
  qp.attr.sq_draining = 0;
  if (!qp.context->behaviour().drained_event_on_request || qp.attr.en_sqd_async_notify != 0)
    raise_qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

void clear_work(session_state& state, sim_qp& qp) {
  stop_waiting(state, qp);
  qp.attr.sq_draining = 0;
  qp.sends.clear();
  qp.receives.clear();
  qp.unreclaimed = qp.slots_in_use = 0;
  qp.established = false;
  wake_senders_to(state, qp.verbs.qp_num);
  const device_behaviour& behaviour = qp.context->behaviour();
  for (sim_cq* cq : {qp.send_cq, qp.recv_cq}) {
    if (!cq) continue;
    if (behaviour.purges_completions) {
      const auto own = [&qp](const completion& c) { return c.wc.qp_num == qp.verbs.qp_num; };
      cq->entries.remove_if(own);
      std::erase_if(cq->held, [&own](const held_completion& h) { return own(h.done); });
    } else if (behaviour.slots_free_when_polled) {
      // They stay, and give back no slots: those are free, and the queue pair may be gone.
      const auto part = [&qp](completion& c) {
        if (c.qp == &qp) c.qp = nullptr;
      };
      for (std::size_t i = 0; i < cq->entries.size(); ++i) part(cq->entries[i]);
      for (held_completion& h : cq->held) part(h.done);
    }
  }
}

}  // namespace ibvxx::shim
