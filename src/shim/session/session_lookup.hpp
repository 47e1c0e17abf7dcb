// The objects that a test names to its session: each must exist and be alive. Header only.
#pragma once

#include <stdexcept>
#include <string>

#include "core/session_state.hpp"

namespace ibvxx::shim {

/// The record of a live object. Throws std::logic_error for anything else.
[[nodiscard]] inline record& find_live(session_state& state, const void* handle, object_kind kind) {
  if (state.forwards())
    throw std::logic_error("shim: a session that forwards has no simulated objects");
  record* object = state.objects.find(handle);
  if (!object || !object->live || object->kind != kind)
    throw std::logic_error(std::string("shim: that is no live ") + name(kind) + " of this session");
  return *object;
}

/// The object itself.
template <class Sim>
[[nodiscard]] Sim& find_live(session_state& state, const void* handle) {
  return *static_cast<Sim*>(find_live(state, handle, Sim::kind).storage.get());
}

}  // namespace ibvxx::shim
