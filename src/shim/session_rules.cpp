// Making rules, and keeping completions back.
#include <ibvxx/shim/session.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "data_path.hpp"
#include "engine.hpp"
#include "session_lookup.hpp"
#include "sim_device.hpp"
#include "sim_events.hpp"
#include "sim_queue_pair.hpp"
#include "verb_facts.hpp"

namespace ibvxx::shim {
namespace {

/// Statuses that only whoever sends can get, since they tell of somebody else.
[[nodiscard]] bool is_requesters(ibv_wc_status status) noexcept {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
         status == IBV_WC_REM_OP_ERR || status == IBV_WC_MW_BIND_ERR;
}

/// Statuses that take an answer, or the lack of one, to know.
[[nodiscard]] bool takes_an_answer(ibv_wc_status status) noexcept {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
         status == IBV_WC_REM_OP_ERR || status == IBV_WC_REM_ACCESS_ERR ||
         status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ABORT_ERR;
}

}  // namespace

fault session::at(verb call) {
  if (!facts_of(call).seen)
    throw std::logic_error(std::string("shim: ") + name(call) +
                           " is not intercepted: no rule for it could fire");
  return fault(call);
}

fault session::fail(verb call) {
  switch (call) {
    case verb::free_device_list:
    case verb::unimport_pd:
    case verb::unimport_mr:
    case verb::unimport_dm:
    case verb::is_fork_initialized:
    case verb::query_qp_data_in_order:
    case verb::end_poll:
    case verb::wr_start:
    case verb::wr_abort:
      throw std::logic_error(std::string("shim: ") + name(call) + " cannot fail");
    default:
      return at(call);
  }
}

fault session::at_call(std::uint64_t index) {
  const engine::suppress_interception quiet;
  const std::uint64_t made = engine::lock_session().state.calls;
  if (index <= made)
    throw std::logic_error("shim: call " + std::to_string(index) +
                           " was made already: " + std::to_string(made) + " calls so far");
  return fault(verb::none, index);
}

fault fault::nth(std::uint64_t n) const {
  if (n == 0) throw std::logic_error("shim: fault.nth(0): calls count from 1");
  if (index_ != 0) throw std::logic_error("shim: at_call() is about one call: it has no nth()");
  fault next = *this;
  next.nth_ = n;
  return next;
}

fault fault::times(std::uint64_t count) const {
  if (count == 0) throw std::logic_error("shim: fault.times(0) would inject nothing");
  if (index_ != 0) throw std::logic_error("shim: at_call() is about one call: it happens once");
  fault next = *this;
  next.times_ = count;
  return next;
}

fault fault::persistently() const {
  return times(UINT64_MAX);
}

fault fault::on(const void* object) const {
  if (!object) throw std::logic_error("shim: fault.on(nullptr) would match nothing");
  fault next = *this;
  next.object_ = object;
  return next;
}

fault fault::on_this_thread() const {
  fault next = *this;
  next.this_thread_ = true;
  return next;
}

fault fault::negated() const {
  if (convention_of(call_) != convention::code)
    throw std::logic_error(std::string("shim: ") + name(call_) +
                           " does not return the error number, so it cannot be negative");
  fault next = *this;
  next.negated_ = true;
  return next;
}

fault fault::at_request(std::size_t k) const {
  if (k == 0) throw std::logic_error("shim: fault.at_request(0): requests count from 1");
  if (!takes_requests(call_))
    throw std::logic_error(std::string("shim: ") + name(call_) + " takes no list of requests");
  fault next = *this;
  next.request_ = k;
  return next;
}

fault fault::after_effect() const {
  if (!can_fail_after_effect(call_))
    throw std::logic_error(std::string("shim: ") + name(call_) +
                           " has no effect that could outlast its failure");
  fault next = *this;
  next.after_effect_ = true;
  return next;
}

void fault::with(int code) const {
  if (code <= 0 || code > 4095)
    throw std::logic_error("shim: fault.with(" + std::to_string(code) +
                           "): an errno is in 1..4095");
  if (call_ == verb::allocate && code != ENOMEM)
    throw std::logic_error("shim: an allocation fails with ENOMEM only");
  if (index_ != 0)
    throw std::logic_error(
        "shim: at_call() is for run() and unplug(): how the call fails depends "
        "on its verb");
  put_in_force(code, nullptr);
}

void fault::without_errno() const {
  if (convention_of(call_) != convention::pointer)
    throw std::logic_error(std::string("shim: ") + name(call_) +
                           " returns no pointer, so it cannot fail without saying why");
  fault next = *this;
  next.unspecified_ = true;
  next.put_in_force(0, nullptr);
}

void fault::unplug(std::string device) const {
  const engine::suppress_interception quiet;
  if (!device_called(engine::lock_session().state, device))
    throw std::logic_error("shim: there is no simulated device '" + device + "'");
  run([device = std::move(device)] {
    const engine::suppress_interception shims_own;
    const auto seen = engine::lock_session();
    sim_device& gone = *device_called(seen.state, device);
    if (gone.lost) return;
    remove_device(seen.state, gone);
    retry_waiting(seen.state);
  });
}

void fault::run(std::function<void()> action) const {
  if (!action) throw std::logic_error("shim: fault.run() without an action would do nothing");
  if (negated_ || after_effect_ || request_ != 0)
    throw std::logic_error(
        "shim: negated(), after_effect() and at_request() are about a failure, "
        "which run() and unplug() are none");
  put_in_force(0, std::move(action));
}

void fault::put_in_force(int code, std::function<void()> action) const {
  const engine::suppress_interception quiet;
  fault_rule rule;
  rule.call = call_;
  rule.index = index_;
  rule.nth = nth_;
  rule.times = times_;
  rule.object = object_;
  if (this_thread_) rule.thread = std::this_thread::get_id();
  rule.code = code;
  rule.fails = code != 0 || unspecified_;
  rule.negated = negated_;
  rule.after_effect = after_effect_;
  rule.request = request_;
  rule.action = std::move(action);
  engine::lock_session().state.plan.add(std::move(rule));
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

completion_fault completion_fault::nth(std::uint64_t n) const {
  if (n == 0) throw std::logic_error("shim: completion_fault.nth(0): requests count from 1");
  completion_fault next = *this;
  next.nth_ = n;
  return next;
}

completion_fault completion_fault::times(std::uint64_t count) const {
  if (count == 0) throw std::logic_error("shim: completion_fault.times(0) would inject nothing");
  completion_fault next = *this;
  next.times_ = count;
  return next;
}

completion_fault completion_fault::opcode(ibv_wr_opcode which) const {
  const bool takes_receive = which == IBV_WR_SEND || which == IBV_WR_SEND_WITH_IMM ||
                             which == IBV_WR_SEND_WITH_INV || which == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (receives_ && !takes_receive)
    throw std::logic_error("shim: requests of opcode " + std::to_string(which) +
                           " take no receive");
  completion_fault next = *this;
  next.any_opcode_ = false;
  next.opcode_ = which;
  return next;
}

completion_fault completion_fault::after_effect() const {
  if (receives_) throw std::logic_error("shim: a receive that has taken effect has completed");
  completion_fault next = *this;
  next.after_effect_ = true;
  return next;
}

void completion_fault::with(ibv_wc_status status) const {
  if (status <= IBV_WC_SUCCESS || status > IBV_WC_TM_RNDV_INCOMPLETE)
    throw std::logic_error("shim: status " + std::to_string(status) + " is no error");
  if (receives_ && is_requesters(status))
    throw std::logic_error("shim: a receive does not complete with status " +
                           std::to_string(status) + ", which tells a sender of somebody else");
  const bool connected = qp_->qp_type == IBV_QPT_RC || qp_->qp_type == IBV_QPT_XRC_SEND;
  if (!receives_ && !connected && takes_an_answer(status))
    throw std::logic_error(
        "shim: nobody answers this type of queue pair, so its requests do not "
        "complete with status " +
        std::to_string(status));
  put_in_force(status, false);
}

void completion_fault::lose() const {
  if (after_effect_)
    throw std::logic_error("shim: after_effect() is about a failure, and lose() is none");
  put_in_force(IBV_WC_SUCCESS, true);
}

void completion_fault::put_in_force(ibv_wc_status status, bool lost) const {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  const record& object = find_live(seen.state, qp_, object_kind::qp);
  completion_rule rule;
  rule.qp = static_cast<const sim_qp*>(object.storage.get())->original;
  rule.title = object.title;
  rule.receives = receives_;
  rule.any_opcode = any_opcode_;
  rule.opcode = opcode_;
  rule.nth = nth_;
  rule.times = times_;
  rule.status = status;
  rule.after_effect = after_effect_;
  rule.lost = lost;
  seen.state.completions.add(std::move(rule));
}

void session::hold_completions(ibv_cq* cq) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_cq& queue = find_live<sim_cq>(seen.state, cq);
  if (queue.hold != 0) throw std::logic_error("shim: the CQ's completions are kept back already");
  queue.hold = seen.state.completions.hold(seen.state.objects.find(cq)->title);
}

std::size_t session::release_completions(ibv_cq* cq, std::size_t count) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_cq& queue = find_live<sim_cq>(seen.state, cq);
  if (queue.hold == 0) throw std::logic_error("shim: the CQ's completions are not kept back");
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
      state.objects.found(finding_kind::unfired_rule, describe(rule) + " never fired");
  for (const completion_rule& rule : state.completions.rules())
    if (rule.fired == 0 && !rule.cleared)
      state.objects.found(finding_kind::unfired_rule, describe(rule) + " never fired");
  for (const completion_hold& hold : state.completions.holds())
    if (hold.held == 0 && !hold.cleared)
      state.objects.found(finding_kind::unfired_rule,
                          "hold_completions on " + hold.title + " kept nothing back");
}

}  // namespace ibvxx::shim
