// Rules that make work requests fail or lose their completions.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace ibvxx::shim {

/// A rule that is being built: `session.complete(qp).nth(3).with(IBV_WC_RETRY_EXC_ERR)`. It takes
/// effect at with() or lose(). Every member throws std::logic_error, with the reason, for a rule
/// that is not valid.
class [[nodiscard]] completion_fault {
 public:
  /// The first matching request that is affected, counted from the creation of the rule: 1 is the
  /// next, and the default.
  completion_fault nth(std::uint64_t n) const;
  /// The number of requests from that one on; 1 is the default.
  completion_fault times(std::uint64_t count) const;
  /// Only requests with this opcode; for a receive queue, only receives that such a request
  /// consumes.
  completion_fault opcode(ibv_wr_opcode which) const;
  /// The request takes effect and fails all the same: its data arrived, its acknowledgement did
  /// not. For send queues only.
  completion_fault after_effect() const;

  /// The status of the completion. Completes the rule, which then takes effect. The queue pair
  /// breaks as after a real error: state ERR (SQE if only the send queue stops), and its other
  /// requests are flushed. A receive that fails makes the request of the sender fail as well.
  void with(ibv_wc_status status) const;
  /// The request succeeds, and its completion never arrives. Completes the rule.
  void lose() const;

 private:
  friend class session;
  completion_fault(const ibv_qp* qp, bool receives) noexcept : qp_(qp), receives_(receives) {}
  void put_in_force(ibv_wc_status status, bool lost) const;

  const ibv_qp* qp_;
  bool receives_;
  bool any_opcode_ = true;
  bool after_effect_ = false;
  ibv_wr_opcode opcode_ = IBV_WR_SEND;
  std::uint64_t nth_ = 1;
  std::uint64_t times_ = 1;
};

}  // namespace ibvxx::shim
