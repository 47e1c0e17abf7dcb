#include "device/data_path/send_queue.hpp"

#include <cstddef>
#include <list>
#include <utility>
#include <vector>

#include "device/data_path/completion.hpp"
#include "device/data_path/requester.hpp"
#include "device/machine.hpp"
#include "device/receive.hpp"

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

/// Takes a queue pair from the lists of what it waits for.
void leave_lists(machine& own, sim_qp& qp) noexcept {
  for (wait_place& one : qp.waits_for) {
    if (one.key == 0) continue;
    const auto list = own.waiting_for.find(std::exchange(one.key, 0));
    list->second.erase(one.place);
    if (list->second.empty()) own.waiting_for.erase(list);
  }
  if (std::exchange(qp.is_behind_memory, false)) --own.behind_memory;
}

/// The first request waits: for what its last try has set.
void wait(session_state& state, sim_qp& qp) {
  machine& own = machine_of(state);
  if (std::exchange(qp.waiting, true))
    leave_lists(own, qp);
  else
    qp.place_waiting = own.waiting.insert(own.waiting.end(), &qp);
  const std::uint64_t keys[] = {qp.attr.dest_qp_num & 0xffffff, qp.awaited};
  for (std::size_t i = 0; i < qp.waits_for.size(); ++i) {
    if (keys[i] == 0) continue;
    std::list<sim_qp*>& list = own.waiting_for[keys[i]];
    qp.waits_for[i] = {keys[i], list.insert(list.end(), &qp)};
  }
  qp.is_behind_memory = qp.waits_behind_memory;
  if (qp.is_behind_memory) ++own.behind_memory;
}

/// Tries to carry out a request.
[[nodiscard]] progress try_request(session_state& state, sim_qp& qp, const send_request& request) {
  qp.awaited = 0;
  qp.waits_behind_memory = false;
  return execute(state, qp, request);
}

void append(sim_qp& qp, const send_request& request) {
  qp.sends.append([&request](queued_send& slot) { copy_request(slot, request); });
}

/// In SQD only a request that had begun before continues.
[[nodiscard]] bool may_go_on(const sim_qp& qp) noexcept {
  return qp.state() == IBV_QPS_RTS || (qp.state() == IBV_QPS_SQD && qp.attr.sq_draining != 0);
}

void take_request(session_state& state, sim_qp& qp, const send_request& request) {
  if (qp.context->behaviour().slots_free_when_polled) ++qp.slots_in_use;
  switch (qp.state()) {
    case IBV_QPS_RTS:
      if (qp.sends.empty()) {
        if (try_request(state, qp, request) == progress::done) return;
        append(qp, request);
        wait(state, qp);
        return;
      }
      append(qp, request);
      if (qp.waiting) return;
      wait(state, qp);  // what SQD has kept is tried first
      wake(state, qp);
      return;
    case IBV_QPS_SQD:
      append(qp, request);
      return;
    default:  // ERR and SQE
      complete_send(state, qp, request, IBV_WC_WR_FLUSH_ERR);
  }
}

}  // namespace

void stop_waiting(session_state& state, sim_qp& qp) {
  if (!std::exchange(qp.waiting, false)) return;
  machine& own = machine_of(state);
  leave_lists(own, qp);
  own.waiting.erase(qp.place_waiting);
  if (std::exchange(qp.woken, false)) own.woken.erase(qp.place_woken);
}

void submit(session_state& state, sim_qp& qp, const send_request& request) {
  if (state.completions.empty()) [[likely]]
    return take_request(state, qp, request);
  send_request ruled = request;
  ruled.rule = state.completions.decide(&qp, false, request.opcode);
  take_request(state, qp, ruled);
}

void run_send_queue(session_state& state, sim_qp& qp) {
  while (!qp.sends.empty() && may_go_on(qp)) {
    qp.first_is_running = true;
    const progress made = try_request(state, qp, qp.sends.front().request);
    qp.first_is_running = false;
    if (made == progress::waiting) return wait(state, qp);
    qp.sends.pop();
    if (qp.attr.sq_draining != 0) {
      stop_waiting(state, qp);
      raise_drained(qp);
    }
  }
  if (qp.waiting && qp.sends.empty()) stop_waiting(state, qp);
}

void wake(session_state& state, sim_qp& qp) noexcept {
  if (!qp.waiting || std::exchange(qp.woken, true)) return;
  std::list<sim_qp*>& woken = machine_of(state).woken;
  qp.place_woken = woken.insert(woken.end(), &qp);
}

void wake_senders_to(session_state& state, std::uint32_t number) noexcept {
  machine& own = machine_of(state);
  if (own.waiting.empty()) return;
  const auto list = own.waiting_for.find(number);
  if (list == own.waiting_for.end()) return;
  for (sim_qp* const qp : list->second) wake(state, *qp);
}

void wake_those_behind_memory(session_state& state) noexcept {
  machine& own = machine_of(state);
  if (own.behind_memory == 0) return;
  for (sim_qp* const qp : own.waiting)
    if (qp->is_behind_memory) wake(state, *qp);
}

void continue_waiting(session_state& state) {
  machine& own = machine_of(state);
  if (own.woken.empty() || std::exchange(own.retrying, true)) return;
  while (!own.woken.empty()) {
    sim_qp& qp = *own.woken.front();
    own.woken.pop_front();
    qp.woken = false;
    run_send_queue(state, qp);
  }
  own.retrying = false;
}

void serve_waiting(session_state& state, sim_srq& srq) {
  machine& own = machine_of(state);
  std::size_t tries = own.waiting.size();
  for (const std::uint64_t key : {shared_queue_key(srq.verbs.handle), xrc_queue_key(srq.number)})
    for (; tries != 0 && !srq.receives.empty(); --tries) {
      const auto list = own.waiting_for.find(key);
      if (list == own.waiting_for.end()) break;
      wake(state, *list->second.front());
      continue_waiting(state);
    }
}

void retry_waiting(session_state& state) {
  for (sim_qp* const qp : machine_of(state).waiting) wake(state, *qp);
  continue_waiting(state);
}

}  // namespace ibvxx::shim
