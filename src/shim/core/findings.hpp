// Findings: what a program did wrong, and which of it a test expects.
#pragma once

#include <array>
#include <ibvxx/shim/ledger.hpp>
#include <string>
#include <vector>

namespace ibvxx::shim {

struct record;

/// The findings of a session. Not synchronised: needs the engine's lock. Costs: add() is linear in
/// the expectations.
class finding_log {
 public:
  /// Adds a finding with its advice and the recorded call stacks, unless it is expected or
  /// tolerated. `about`: the object concerned, or null.
  void add(finding_kind kind, std::string text, const record* about = nullptr);
  /// The next finding of this kind that contains this text is expected.
  void expect(finding_kind kind, std::string containing) {
    expected_.push_back({kind, std::move(containing)});
  }
  void tolerate(finding_kind kind) noexcept { tolerated_[static_cast<std::size_t>(kind)] = true; }
  void clear_expectations() noexcept { expected_.clear(); }
  /// Adds a finding for each expectation that was not met.
  void find_unmet_expectations();
  /// From now on each finding holds the call stack at which it was found.
  void keep_call_stacks() noexcept { call_stacks_ = true; }
  [[nodiscard]] const std::vector<finding>& all() const noexcept { return all_; }

 private:
  struct expectation {
    finding_kind kind;
    std::string containing;
    bool met = false;
  };

  std::vector<finding> all_;
  std::vector<expectation> expected_;
  std::array<bool, finding_kind_count> tolerated_{};
  bool call_stacks_ = false;
};

}  // namespace ibvxx::shim
