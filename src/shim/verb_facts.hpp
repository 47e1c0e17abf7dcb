// What the shim knows of each verb: whether it sees it, and how the verb can really fail.
#pragma once

#include <ibvxx/verb.hpp>
#include <span>

namespace ibvxx::shim {

struct verb_facts {
  std::span<const int>
      errnos;     ///< what a sweep injects; empty: the verb cannot fail, or is not simulated
  bool seen;      ///< the shim intercepts it
  bool destroys;  ///< ends an object: a failure of it keeps the object alive
  bool data_path = false;  ///< called without end: counted, but not traced
};

[[nodiscard]] verb_facts facts_of(verb call) noexcept;

}  // namespace ibvxx::shim
