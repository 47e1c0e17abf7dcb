#include "device/data_path/send_queue.hpp"

#include <cstddef>
#include <vector>

#include "device/data_path/completion.hpp"
#include "device/data_path/requester.hpp"
#include "device/machine.hpp"

namespace ibvxx::shim {
namespace {

/// Copies what a request borrows from the program.
void copy_request(queued_send& slot, const send_request& request) {
  slot.request = request;
  slot.sges.assign(request.sges, request.sges + request.sge_count);
  slot.inline_data.clear();
  if ((request.flags & IBV_SEND_INLINE) != 0 && request.length != 0) {
    slot.inline_data.reserve(request.length);
    for (const ibv_sge& one : slot.sges) {
      const auto* bytes = reinterpret_cast<const std::byte*>(one.addr);
      slot.inline_data.insert(slot.inline_data.end(), bytes, bytes + one.length);
    }
    slot.sges.assign(1, {reinterpret_cast<std::uintptr_t>(slot.inline_data.data()),
                         static_cast<std::uint32_t>(request.length), 0});
  }
  slot.request.sges = slot.sges.data();
  slot.request.sge_count = static_cast<std::uint32_t>(slot.sges.size());
}

void wait(session_state& state, sim_qp& qp) {
  if (qp.waiting) return;
  qp.waiting = true;
  machine_of(state).waiting.push_back(&qp);
}

/// In SQD only a request that had begun before continues.
[[nodiscard]] bool may_go_on(const sim_qp& qp) noexcept {
  return qp.state() == IBV_QPS_RTS || (qp.state() == IBV_QPS_SQD && qp.attr.sq_draining != 0);
}

void take_request(session_state& state, sim_qp& qp, const send_request& request) {
  if (qp.context->behaviour().slots_free_when_polled) ++qp.slots_in_use;
  switch (qp.state()) {
    case IBV_QPS_RTS:
      if (qp.sends.empty() && execute(state, qp, request) == progress::done) return;
      copy_request(qp.sends.append(), request);
      wait(state, qp);
      return;
    case IBV_QPS_SQD:
      copy_request(qp.sends.append(), request);
      return;
    default:  // ERR and SQE
      complete_send(state, qp, request, IBV_WC_WR_FLUSH_ERR);
  }
}

}  // namespace

void stop_waiting(session_state& state, sim_qp& qp) {
  qp.waiting = false;
  std::erase(machine_of(state).waiting, &qp);
}

void submit(session_state& state, sim_qp& qp, const send_request& request) {
  if (state.completions.empty()) [[likely]]
    return take_request(state, qp, request);
  send_request ruled = request;
  ruled.rule = state.completions.decide(&qp, false, request.opcode);
  take_request(state, qp, ruled);
}

bool run_send_queue(session_state& state, sim_qp& qp) {
  bool moved = false;
  while (!qp.sends.empty() && may_go_on(qp)) {
    qp.first_is_running = true;
    const progress made = execute(state, qp, qp.sends.front().request);
    qp.first_is_running = false;
    if (made == progress::waiting) {
      wait(state, qp);
      return moved;
    }
    qp.sends.pop();
    moved = true;
    if (qp.attr.sq_draining != 0) {
      stop_waiting(state, qp);
      raise_drained(qp);
    }
  }
  if (qp.waiting && qp.sends.empty()) stop_waiting(state, qp);
  return moved;
}

void retry_waiting(session_state& state) {
  machine& own = machine_of(state);
  if (own.waiting.empty() || own.retrying) return;
  own.retrying = true;
  for (bool moved = true; moved;) {
    moved = false;
    const std::vector<sim_qp*> now = own.waiting;  // the longest waiting first
    for (sim_qp* qp : now)
      if (qp->waiting && run_send_queue(state, *qp)) moved = true;
  }
  own.retrying = false;
}

}  // namespace ibvxx::shim
