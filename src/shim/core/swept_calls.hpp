// The calls of a sweep's run. Each has an address that calls of other verbs or threads do not
// shift.
#pragma once

#include <array>
#include <cstdint>
#include <ibvxx/verb.hpp>
#include <vector>

namespace ibvxx::shim {

/// The n-th call of its verb by its thread.
struct call_address {
  verb call = verb::none;
  std::uint64_t number = 0;  ///< counts from 1; 0: no address
  unsigned thread = 1;       ///< counts from 1, in the order of the threads' first counted calls
};

/// Not synchronised: needs the engine's lock. Costs: count() is constant, one array of a number for
/// each verb is kept for each thread.
class swept_calls {
 public:
  swept_calls() noexcept;
  /// Counts a call of the calling thread.
  call_address count(verb call);
  /// All calls so far, in order.
  [[nodiscard]] const std::vector<call_address>& all() const noexcept { return all_; }
  [[nodiscard]] std::size_t threads() const noexcept { return counts_.size(); }

 private:
  std::uint64_t id_;
  std::vector<std::array<std::uint64_t, verb_count>> counts_;  // of each thread
  std::vector<call_address> all_;
};

}  // namespace ibvxx::shim
