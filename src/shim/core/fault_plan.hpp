// The rules in force, and the decision for each call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ibvxx/verb.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/swept_calls.hpp"

namespace ibvxx::shim {

struct fault_rule {
  verb call = verb::none;   ///< none: any verb
  std::uint64_t index = 0;  ///< of the first call that it matches, over all verbs; 0: any call
  call_address address{};   ///< of the first call that it matches, in a sweep; number 0: any call
  std::uint64_t nth = 1;
  std::uint64_t times = 1;
  const void* object = nullptr;
  std::thread::id thread{};  ///< the default: any thread
  int code = 0;              ///< of a failure; 0: without errno
  bool fails = false;        ///< false: only the action runs
  bool negated = false;      ///< the code is returned negative
  bool after_effect = false;
  std::size_t request = 0;  ///< of the refused request in its list, from 1; 0: the whole call
  std::function<void()> action{};  ///< runs before the call
  std::uint64_t seen = 0;          ///< matching calls so far
  std::uint64_t fired = 0;
};

/// "ibv_create_cq@2"; "ibv_create_cq@2/t3" where another than the first thread calls.
[[nodiscard]] std::string describe(const call_address& address);
/// "ibv_create_cq, call 2 -> ENOMEM, once".
[[nodiscard]] std::string describe(const fault_rule& rule);

struct decision {
  bool fails = false;
  bool after_effect = false;
  int code = 0;             ///< what to return by the verb's convention; may be negative
  std::size_t request = 0;  ///< of the refused request in its list, from 1; 0: the whole call
  std::size_t rule = 0;     ///< index of the rule that decided
  std::function<void()> action{};  ///< runs first; may be empty
};

/// Not synchronised: needs the engine's lock. Costs: decide() is linear in the rules.
class fault_plan {
 public:
  void add(fault_rule rule) { rules_.push_back(std::move(rule)); }
  void clear() noexcept { rules_.clear(); }
  /// The decision for this call. Every matching rule counts it; the oldest that fires decides.
  [[nodiscard]] decision decide(verb call, std::uint64_t index, const void* object,
                                const call_address& address = {});
  /// Marks the rule as fired: the list contains the request that it refuses. Valid only during the
  /// call that was decided.
  void fired(const decision& decided) noexcept {
    if (decided.rule < rules_.size()) ++rules_[decided.rule].fired;
  }
  [[nodiscard]] const std::vector<fault_rule>& rules() const noexcept { return rules_; }

 private:
  std::vector<fault_rule> rules_;
};

}  // namespace ibvxx::shim
