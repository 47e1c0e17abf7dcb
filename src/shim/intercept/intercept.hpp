// What every intercepted function does. Header only.
//
// An entry names the verb, the real operation and the device's function. The verb's object is its
// first argument.
#pragma once

#include <infiniband/verbs.h>

#include <type_traits>

#include "core/call.hpp"
#include "forward/forwarding.hpp"

namespace ibvxx::shim {

/// What a verb is called on: its first argument, or nothing where that is no object.
[[nodiscard]] inline const void* subject_of() noexcept {
  return nullptr;
}
template <class... Rest>
[[nodiscard]] const void* subject_of(const void* object, const Rest&...) noexcept {
  return object;
}
template <class... Rest>
[[nodiscard]] const void* subject_of(int, const Rest&...) noexcept {
  return nullptr;
}
template <class... Rest>
[[nodiscard]] const void* subject_of(const int*, const Rest&...) noexcept {
  return nullptr;
}
template <class... Rest>
[[nodiscard]] const void* subject_of(const ibv_async_event*, const Rest&...) noexcept {
  return nullptr;
}

/// Passes a call to the real library or to the device; every verb is decided here.
template <class Real, class Result, class... Parameters>
Result answer(call& c, Real real, Result (*simulated)(call&, Parameters...),
              std::type_identity_t<Parameters>... arguments) {
  return c.forwarded() ? forward<Result>(c, real, arguments...) : simulated(c, arguments...);
}

/// A call on its first argument.
template <class Real, class Result, class... Parameters>
Result intercepted(verb v, Real real, Result (*simulated)(call&, Parameters...),
                   std::type_identity_t<Parameters>... arguments) {
  call c(v, subject_of(arguments...));
  return answer(c, real, simulated, arguments...);
}

/// A call that makes an object with operations of its own; `intercept` replaces them by the shim's.
template <class Real, class Result, class... Parameters>
Result intercepted_maker(verb v, Real real, Result (*simulated)(call&, Parameters...),
                         void (*intercept)(call&, Result),
                         std::type_identity_t<Parameters>... arguments) {
  call c(v, subject_of(arguments...));
  const Result made = answer(c, real, simulated, arguments...);
  if (made && c.is_seen()) intercept(c, made);
  return made;
}

/// An exported function that is no verb of the table: no session counts it.
template <class Result, class... Parameters>
Result intercepted_uncounted(exported real, Result (*simulated)(call&, Parameters...),
                             std::type_identity_t<Parameters>... arguments) {
  if (!engine::simulates()) return call_real<Result>(real.name, arguments...);
  call c(verb::none, call::part::uncounted);
  return simulated(c, arguments...);
}

}  // namespace ibvxx::shim
