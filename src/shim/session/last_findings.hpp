// What is found when a session ends, and how findings are written.
#pragma once

#include <ibvxx/shim/ledger.hpp>
#include <vector>

namespace ibvxx::shim {

/// Adds to the session in force what shows at its end: leaks, rules that never fired, expectations
/// that were not met. Returns all of its findings.
[[nodiscard]] std::vector<finding> find_last();

/// Writes findings to standard error, each with its kind.
void write_findings(const std::vector<finding>& all) noexcept;

}  // namespace ibvxx::shim
