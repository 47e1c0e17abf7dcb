// Findings: what a program did wrong, and which of it a test expects.
#pragma once

#include <array>
#include <cstddef>
#include <ibvxx/shim/ledger.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace ibvxx::shim {

struct record;

/// The findings of a session. Not synchronised: needs the engine's lock. Costs: add() is linear in
/// the text and in the expectations that are not met yet. Memory is bounded: by
/// most_findings_of_a_kind, and by those expectations.
class finding_log {
 public:
  /// Adds a finding with its advice and the recorded call stacks, unless it is expected or
  /// tolerated; counts one that is there already. `about`: the object concerned, or null.
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
  /// The findings in the order of their first occurrence. Their texts say how often each occurred.
  [[nodiscard]] std::vector<finding> all() const;

 private:
  struct expectation {
    finding_kind kind;
    std::string containing;
  };
  struct entry {
    finding first;
    std::size_t misuse_length;  // of its text, up to which it says what happened
  };

  std::vector<entry> entries_;
  std::unordered_map<std::string, std::size_t> places_;  // in entries_, by what makes them equal
  std::vector<expectation> expected_;
  std::array<bool, finding_kind_count> tolerated_{};
  std::array<std::size_t, finding_kind_count> listed_{};
  std::array<std::size_t, finding_kind_count> unlisted_{};
  bool call_stacks_ = false;
};

}  // namespace ibvxx::shim
