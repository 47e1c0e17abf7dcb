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

namespace ibvxx::shim {

struct fault_rule {
  verb call = verb::none;   ///< none: whatever verb it is
  std::uint64_t index = 0;  ///< of the one call that it is about, over all verbs; 0: any call
  std::uint64_t nth = 1;
  std::uint64_t times = 1;
  const void* object = nullptr;
  std::thread::id thread{};  ///< the default: any thread
  int code = 0;              ///< of a failure; 0: without errno
  bool fails = false;        ///< otherwise only the action is done
  bool negated = false;      ///< the code is returned negative
  bool after_effect = false;
  std::size_t request = 0;         ///< the place in a list of the one that is refused; 0: all
  std::function<void()> action{};  ///< done before the call
  std::uint64_t seen = 0;          ///< matching calls so far
  std::uint64_t fired = 0;
};

/// "ibv_create_cq, call 2 -> ENOMEM, once".
[[nodiscard]] std::string describe(const fault_rule& rule);

struct decision {
  bool fails = false;
  bool after_effect = false;
  int code = 0;                    ///< what to return by the verb's convention; may be negative
  std::size_t request = 0;         ///< in a list, the one that fails
  std::size_t rule = 0;            ///< which one decided
  std::function<void()> action{};  ///< to be done first, or empty
};

/// Not synchronised: needs the engine's lock. Costs: a decision looks at each rule.
class fault_plan {
 public:
  void add(fault_rule rule) { rules_.push_back(std::move(rule)); }
  void clear() noexcept { rules_.clear(); }
  /// What happens to this call. Every matching rule counts it; the oldest that fires decides.
  [[nodiscard]] decision decide(verb call, std::uint64_t index, const void* object);
  /// Marks the rule as fired: the list has the request that it refuses. Within the call that the
  /// decision was made for.
  void fired(const decision& decided) noexcept {
    if (decided.rule < rules_.size()) ++rules_[decided.rule].fired;
  }
  [[nodiscard]] const std::vector<fault_rule>& rules() const noexcept { return rules_; }

 private:
  std::vector<fault_rule> rules_;
};

}  // namespace ibvxx::shim
