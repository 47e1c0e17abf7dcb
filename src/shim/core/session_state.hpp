// Everything that belongs to the session in force.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ibvxx/shim/session_options.hpp>
#include <ibvxx/verb.hpp>
#include <memory>
#include <set>

#include "core/call_trace.hpp"
#include "core/completion_plan.hpp"
#include "core/fault_plan.hpp"
#include "core/findings.hpp"
#include "core/ledger.hpp"
#include "core/swept_calls.hpp"
#include "core/verb_table.hpp"

namespace ibvxx::shim {

/// What answers the calls of a session that does not forward, as far as core/ uses it. The
/// simulated machine (device/machine.hpp) derives from it.
class simulation {
 public:
  simulation() = default;
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;
  virtual ~simulation() = default;
  /// The session ends: closes the descriptors of the objects that are alive. Their memory stays for
  /// a while (engine::end).
  virtual void end(const ledger& objects) noexcept = 0;
  /// An object was retired with its unplugged device, without its destroy: nothing may refer to it
  /// any more.
  virtual void drop(const record& object) noexcept = 0;
};

/// Guarded by the engine's lock.
struct session_state {
  std::unique_ptr<simulation> simulated{};  // null: the real library answers
  fault_plan plan{};
  completion_plan completions{};
  ledger objects{};
  finding_log findings{};
  bool strict = false;                   // session_options::strict
  call_trace trace{};                    // calls except those of the data path
  bool traces_posts = false;             // the trace includes posts
  std::unique_ptr<swept_calls> swept{};  // in a sweep's run; null otherwise
  std::uint64_t calls = 0;
  std::array<std::uint64_t, verb_count> counts{};
  /// How long a destroy waits for acknowledgements by other threads before it adds a finding.
  std::chrono::milliseconds destroy_deadline{200};
  std::condition_variable_any acknowledged{};  // notified at each acknowledgement
  std::set<const void*> reported_races{};      // thread scopes with a finding already

  [[nodiscard]] bool forwards() const noexcept { return !simulated; }
  /// Throws std::logic_error for options that make no sense.
  void apply(const session_options& options);
  /// The record of what a verb is called on, or null.
  [[nodiscard]] record* subject_of(verb call, const void* object) const noexcept {
    const verb_row& row = row_of(call);
    if (!row.has_subject) return nullptr;
    // For a descriptor the pointer holds its number.
    if (row.at == operation::c_library) [[unlikely]]
      return objects.find_descriptor(static_cast<int>(reinterpret_cast<std::intptr_t>(object)));
    return object ? objects.find(object) : nullptr;
  }
};

}  // namespace ibvxx::shim
