// What the shim knows of each verb: whether it sees it, and how the verb can really fail.
#pragma once

#include <cstdint>
#include <ibvxx/shim/ledger.hpp>
#include <ibvxx/verb.hpp>
#include <optional>
#include <span>

namespace ibvxx::shim {

/// How a call tells of a failure.
enum class convention : std::uint8_t {
  pointer,        ///< null, and errno
  code,           ///< the error number is the return value
  errno_only,     ///< -1, and errno
  negative_code,  ///< the error number, negative
  other,          ///< its own way, or not at all
};

[[nodiscard]] convention convention_of(verb call) noexcept;

struct verb_facts {
  std::span<const int>
      errnos;     ///< what a sweep injects; empty: the verb cannot fail, or is not simulated
  bool seen;      ///< the shim intercepts it
  bool destroys;  ///< ends an object: a failure of it keeps the object alive
  bool data_path = false;  ///< called without end: counted, but not traced
};

[[nodiscard]] verb_facts facts_of(verb call) noexcept;

/// The kind of object that it returns.
[[nodiscard]] std::optional<object_kind> kind_made_by(verb call) noexcept;
/// Whether it ends the object that it is called on.
[[nodiscard]] bool ends_its_object(verb call) noexcept;

/// Whether it takes a list of requests, of which it may refuse one.
[[nodiscard]] bool takes_requests(verb call) noexcept;
/// Whether it changes or ends something, so that it can fail after its effect.
[[nodiscard]] bool can_fail_after_effect(verb call) noexcept;

}  // namespace ibvxx::shim
