// The rules in force about completions, and the queues whose completions are held.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace ibvxx::shim {

struct completion_rule {
  const void* qp = nullptr;  ///< the device's object behind the handle
  std::string title{};       ///< of the queue pair
  bool receives = false;     ///< matches the receive queue; otherwise the send queue
  bool any_opcode = true;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::uint64_t nth = 1;
  std::uint64_t times = 1;
  ibv_wc_status status = IBV_WC_SUCCESS;
  bool after_effect = false;
  bool lost = false;
  std::uint64_t seen = 0;  ///< matching requests so far
  std::uint64_t fired = 0;
  bool cleared = false;
};

/// "send on QP#1 of sim0, matching request 2 -> IBV_WC_RETRY_EXC_ERR, once".
[[nodiscard]] std::string describe(const completion_rule& rule);

/// A completion queue that a session holds completions of (session::hold_completions).
struct completion_hold {
  std::string title{};
  std::uint64_t held = 0;
  bool cleared = false;
};

/// Not synchronised: needs the engine's lock. Rules are numbered from 1; a request in progress
/// keeps the number of its rule, 0 for none. Costs: decide() is linear in the rules, find() is
/// constant.
class completion_plan {
 public:
  [[nodiscard]] bool empty() const noexcept { return rules_.empty(); }
  void add(completion_rule rule) { rules_.push_back(std::move(rule)); }
  std::uint32_t hold(std::string title) {
    holds_.push_back({std::move(title)});
    return static_cast<std::uint32_t>(holds_.size());
  }
  /// Clears all rules. Completions that are held stay held.
  void clear_rules() noexcept;

  /// The rule for this request, or 0. Every matching rule counts it; the oldest that is due
  /// decides.
  [[nodiscard]] std::uint32_t decide(const void* qp, bool receives, ibv_wr_opcode opcode) noexcept;
  /// The rule of that number; null for 0 and for a cleared rule.
  [[nodiscard]] completion_rule* find(std::uint32_t number) noexcept {
    if (number == 0) [[likely]]
      return nullptr;
    completion_rule& rule = rules_[number - 1];
    return rule.cleared ? nullptr : &rule;
  }
  [[nodiscard]] completion_hold& held(std::uint32_t number) noexcept { return holds_[number - 1]; }

  [[nodiscard]] const std::deque<completion_rule>& rules() const noexcept { return rules_; }
  [[nodiscard]] const std::vector<completion_hold>& holds() const noexcept { return holds_; }

 private:
  std::deque<completion_rule> rules_{};
  std::vector<completion_hold> holds_{};
};

}  // namespace ibvxx::shim
