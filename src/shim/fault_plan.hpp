// The rules in force, and the decision for each call.
#pragma once

#include <cstdint>
#include <functional>
#include <ibvxx/verb.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ibvxx::shim {

struct fault_rule {
  verb call = verb::none;
  std::uint64_t index =
      0;  ///< of the one call that it is about, over all verbs; 0: any call of the verb
  std::uint64_t nth = 1;
  std::uint64_t times = 1;
  const void* object = nullptr;
  std::thread::id thread{};        ///< the default: any thread
  int code = 0;                    ///< 0: nothing fails, only the action is done
  std::function<void()> action{};  ///< done before the call
  std::uint64_t seen = 0;          ///< matching calls so far
  std::uint64_t fired = 0;
};

/// "ibv_create_cq, call 2 -> ENOMEM, once".
[[nodiscard]] std::string describe(const fault_rule& rule);

struct decision {
  int code = 0;                    ///< the errno to fail with, or 0
  std::function<void()> action{};  ///< to be done first, or empty
};

/// Not synchronised: whoever holds the engine's lock may use it.
class fault_plan {
 public:
  void add(fault_rule rule) { rules_.push_back(std::move(rule)); }
  void clear() noexcept { rules_.clear(); }
  /// What happens to this call. Every matching rule counts it; the oldest that fires decides.
  [[nodiscard]] decision decide(verb call, std::uint64_t index, const void* object);
  [[nodiscard]] const std::vector<fault_rule>& rules() const noexcept { return rules_; }

 private:
  std::vector<fault_rule> rules_;
};

}  // namespace ibvxx::shim
