// Rules that make work requests fail, or their completions get lost.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace ibvxx::shim {

/// A rule in the making: `session.complete(qp).nth(3).with(IBV_WC_RETRY_EXC_ERR)`. Nothing is in
/// force before with() or lose(). Every member throws std::logic_error, with the reason, for a rule
/// that makes no sense.
class [[nodiscard]] completion_fault {
 public:
  /// Which matching request, counted from when the rule is made: 1 is the next, and the default.
  completion_fault nth(std::uint64_t n) const;
  /// How many from that one on; 1 is the default.
  completion_fault times(std::uint64_t count) const;
  /// Only requests of this kind; of a receive queue, only receives that such a request takes.
  completion_fault opcode(ibv_wr_opcode which) const;
  /// The request is carried out, and fails all the same: its data arrived, the answer did not. Of a
  /// send queue only.
  completion_fault after_effect() const;

  /// The status that it completes with; completes the rule and puts it in force. The queue pair
  /// breaks as with a real error: state ERR (SQE where a send queue only stops), and what else is
  /// queued is flushed. A receive that fails makes the sender's request fail as well.
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
