// Rules about completions (ibvxx/shim/completion_fault.hpp).
#include <cstdint>
#include <ibvxx/shim/completion_fault.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/engine.hpp"
#include "device/queue_pair.hpp"
#include "session/session_lookup.hpp"

namespace ibvxx::shim {
namespace {

/// Statuses that only a requester gets: they report what the responder did.
[[nodiscard]] bool is_requesters(ibv_wc_status status) noexcept {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
         status == IBV_WC_REM_OP_ERR || status == IBV_WC_MW_BIND_ERR;
}

/// Statuses that result from a response, or from the lack of one.
[[nodiscard]] bool takes_an_answer(ibv_wc_status status) noexcept {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
         status == IBV_WC_REM_OP_ERR || status == IBV_WC_REM_ACCESS_ERR ||
         status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ABORT_ERR;
}

}  // namespace

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
                           std::to_string(status) + ", which reports the responder to a requester");
  const bool connected = qp_->qp_type == IBV_QPT_RC || qp_->qp_type == IBV_QPT_XRC_SEND;
  if (!receives_ && !connected && takes_an_answer(status))
    throw std::logic_error(
        "shim: this type of queue pair gets no responses, so its requests do not "
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
  record& object = find_live(seen.state, qp_, object_kind::qp);
  seen.state.objects.pin(object);  // no other queue pair gets its address
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

}  // namespace ibvxx::shim
