#include "session/rules.hpp"

#include <cstddef>
#include <cstdint>
#include <ibvxx/shim/session.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/engine.hpp"
#include "core/verb_table.hpp"
#include "device/completion_queue.hpp"
#include "device/data_path/completion.hpp"
#include "device/queue_pair.hpp"
#include "session/session_lookup.hpp"

namespace ibvxx::shim {

fault session::at(verb call) {
  if (!row_of(call).intercepted())
    throw std::logic_error(std::string("shim: ") + name(call) +
                           " is not intercepted: no rule for it could fire");
  return fault(call);
}

fault session::fail(verb call) {
  fault rule = at(call);
  if (row_of(call).reports == convention::cannot_fail)
    throw std::logic_error(std::string("shim: ") + name(call) + " cannot fail");
  return rule;
}

fault session::at_call(std::uint64_t index) {
  const engine::suppress_interception quiet;
  const std::uint64_t made = engine::lock_session().state.calls;
  if (index <= made)
    throw std::logic_error("shim: call " + std::to_string(index) +
                           " was made already: " + std::to_string(made) + " calls so far");
  return fault(verb::none, index);
}

completion_fault session::complete(const ibv_qp* qp) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  const auto* found = &find_live<sim_qp>(seen.state, qp);
  if (found->verbs.qp_type == IBV_QPT_XRC_RECV)
    throw std::logic_error("shim: an XRC receiver sends nothing that could complete");
  return {qp, false};
}

completion_fault session::complete_receive(const ibv_qp* qp) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  const auto* found = &find_live<sim_qp>(seen.state, qp);
  if (found->verbs.qp_type == IBV_QPT_XRC_SEND)
    throw std::logic_error("shim: an XRC sender receives nothing that could complete");
  return {qp, true};
}

void session::hold_completions(ibv_cq* cq) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_cq& queue = find_live<sim_cq>(seen.state, cq);
  if (queue.hold != 0) throw std::logic_error("shim: the CQ's completions are held already");
  queue.hold = seen.state.completions.hold(seen.state.objects.find(cq)->title);
}

std::size_t session::release_completions(ibv_cq* cq, std::size_t count) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_cq& queue = find_live<sim_cq>(seen.state, cq);
  if (queue.hold == 0) throw std::logic_error("shim: the CQ's completions are not held");
  const std::uint32_t hold = std::exchange(queue.hold, 0);
  std::size_t delivered = 0;
  for (; delivered < count && !queue.held.empty(); ++delivered) {
    const held_completion next = queue.held.front();
    queue.held.pop_front();
    static_cast<void>(shim::complete(seen.state, queue, next.done, next.solicited));
  }
  if (count != SIZE_MAX) queue.hold = hold;
  return delivered;
}

std::size_t session::held_completions(const ibv_cq* cq) const {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  return find_live<sim_cq>(seen.state, cq).held.size();
}

void find_unfired(session_state& state) {
  for (const fault_rule& rule : state.plan.rules())
    if (rule.fired == 0)
      state.findings.add(finding_kind::unfired_rule, describe(rule) + " never fired");
  for (const completion_rule& rule : state.completions.rules())
    if (rule.fired == 0 && !rule.cleared)
      state.findings.add(finding_kind::unfired_rule, describe(rule) + " never fired");
  for (const completion_hold& hold : state.completions.holds())
    if (hold.held == 0 && !hold.cleared)
      state.findings.add(finding_kind::unfired_rule,
                         "hold_completions on " + hold.title + " held no completion");
}

}  // namespace ibvxx::shim
