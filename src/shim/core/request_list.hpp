// Lists of work requests, as posting verbs take them. Header only.
#pragma once

#include <cstddef>

#include "core/call.hpp"

namespace ibvxx::shim {

/// Refuses a list of requests from this one on.
template <class Request>
int refuse(Request* one, Request** bad, int code) noexcept {
  if (bad) *bad = one;
  return code;
}

/// Whether a list of requests never ends.
template <class Request>
[[nodiscard]] bool is_endless(const Request* list) noexcept {
  // Brent's algorithm: the tortoise jumps to the hare at every power of two.
  const Request* tortoise = list;
  std::size_t steps = 0;
  std::size_t limit = 2;
  for (const Request* hare = list ? list->next : nullptr; hare; hare = hare->next) {
    if (hare == tortoise) return true;
    if (++steps == limit) {
      tortoise = hare;
      steps = 0;
      limit *= 2;
    }
  }
  return false;
}

/// is_endless(), which also adds a finding for an endless list.
template <class Request>
[[nodiscard]] bool refuse_endless(call& c, const Request* list) noexcept {
  if (!list || !list->next || !is_endless(list)) [[likely]]
    return false;
  c.found(finding_kind::foreign_pointer,
          c.here() + " was given a list of requests that leads back into itself");
  return true;
}

}  // namespace ibvxx::shim
