// The rules in force, and the decision for each call.
#pragma once

#include <cstdint>
#include <ibvxx/verb.hpp>
#include <string>
#include <thread>
#include <vector>

namespace ibvxx::shim {

struct fault_rule {
  verb call = verb::none;
  std::uint64_t index =
      0;  ///< of the one call that it is about, over all verbs; 0: any call of the verb
  std::uint64_t nth = 1;
  std::uint64_t times = 1;
  const void* object = nullptr;
  std::thread::id thread{};  ///< the default: any thread
  int code = 0;
  std::uint64_t seen = 0;  ///< matching calls so far
  std::uint64_t fired = 0;
};

/// "ibv_create_cq, call 2 -> ENOMEM, once".
[[nodiscard]] std::string describe(const fault_rule& rule);

/// Not synchronised: whoever holds the engine's lock may use it.
class fault_plan {
 public:
  void add(const fault_rule& rule) { rules_.push_back(rule); }
  void clear() noexcept { rules_.clear(); }
  /// The errno for this call, or 0. Every matching rule counts the call; the oldest that fires
  /// decides.
  [[nodiscard]] int decide(verb call, std::uint64_t index, const void* object) noexcept;
  [[nodiscard]] const std::vector<fault_rule>& rules() const noexcept { return rules_; }

 private:
  std::vector<fault_rule> rules_;
};

}  // namespace ibvxx::shim
