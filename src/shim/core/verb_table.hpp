// The properties of each verb: one row for each, in verb_table.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ibvxx/shim/ledger.hpp>
#include <ibvxx/verb.hpp>
#include <optional>
#include <span>

namespace ibvxx::shim {

/// How a verb reports a failure.
enum class convention : std::uint8_t {
  cannot_fail,     ///< void, or every value is an answer
  pointer,         ///< null, and errno
  bad_alloc,       ///< std::bad_alloc, or null from the nothrow forms of operator new
  code,            ///< the error number is the return value
  minus_one,       ///< -1, and errno
  negative_code,   ///< the error number, negative
  negative_value,  ///< -1, and errno is not set (ibv_poll_cq)
  rereg_code,      ///< a number of its own, and errno for one of them (ibv_rereg_mr)
};

/// Where verbs.h calls the real operation, and where the shim takes its place.
enum class operation : std::uint8_t {
  none,          ///< not intercepted: no rule for the verb could take effect
  exported,      ///< a function that libibverbs exports
  context_slot,  ///< ibv_context::ops or verbs_context
  object_slot,   ///< a function pointer in the object itself: extended queues, work queues, ibv_dm
  c_library      ///< a function of the C or C++ library
};

/// What a successful call ends.
enum class ends : std::uint8_t {
  nothing,
  subject,  ///< the object that it is called on
  other,    ///< something that it names otherwise: a membership, a descriptor
};

/// One verb. A row that leaves a field out has the default.
struct verb_row {
  verb call = verb::none;
  operation at = operation::none;
  convention reports = convention::cannot_fail;
  /// What a sweep injects, the errno of order-2 sweeps first. Empty: no failure is injected.
  std::span<const int> errnos{};
  /// The kind of object that it returns.
  std::optional<object_kind> makes{};
  ends ending = ends::nothing;
  /// False for the data path, whose calls are counted but not traced: their number has no bound.
  bool traced = true;
  /// The ledger has the object that it is called on.
  bool has_subject = true;
  /// Takes a list of requests, of which it may refuse one.
  bool takes_requests = false;
  /// Changes or ends something, so that it can report a failure after its effect.
  bool can_fail_after_effect = false;

  [[nodiscard]] constexpr bool intercepted() const noexcept { return at != operation::none; }
  [[nodiscard]] constexpr bool ends_something() const noexcept { return ending != ends::nothing; }
};

/// The table, in the order of the enumeration.
extern const std::array<verb_row, verb_count> verb_table;

/// The row of a verb.
[[nodiscard]] inline const verb_row& row_of(verb call) noexcept {
  return verb_table[static_cast<std::size_t>(call)];
}

}  // namespace ibvxx::shim
