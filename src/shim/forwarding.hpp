// Calls that go on to the real library: all of them without a session, and those of a session that
// forwards after it has had its say.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <type_traits>

#include "engine.hpp"
#include "real.hpp"

namespace ibvxx::shim {

/// The operations of a real context as they were before the shim's took their place.
[[nodiscard]] const verbs_context& original_operations(const ibv_context& context) noexcept;

/// verbs.h calls many verbs through the context: from now on those come to the shim as well.
void intercept_operations(ibv_context& context);

/// At the end of a run: destroys what the session's ledger says is alive, so that the next finds
/// the machine as this one did. Failed destroys were the run's own, and nobody holds their objects
/// any more.
void destroy_leftovers();

/// What a refused call answers, by the convention of its verb.
template <class Result>
[[nodiscard]] Result refusal(const call& c) noexcept {
  if constexpr (std::is_pointer_v<Result>)
    return c.refuse_pointer();
  else if constexpr (!std::is_void_v<Result>)
    return static_cast<Result>(c.refuse_by_convention());
}

/// What a library without the function would answer: ENOSYS.
template <class Result>
Result without_function() noexcept {
  errno = ENOSYS;
  if constexpr (std::is_pointer_v<Result>)
    return nullptr;
  else if constexpr (!std::is_void_v<Result>)
    return static_cast<Result>(ENOSYS);
}

/// Calls the real function, which is null where there is none. In a session that forwards, the call
/// may be refused before, and what it made or ended is written down after; the session's lock is
/// not held while it runs.
template <class Result, class... Parameters>
Result carry_out(call& c, Result (*target)(Parameters...),
                 std::type_identity_t<Parameters>... arguments) noexcept {
  if (!target) return without_function<Result>();
  if (!c.is_seen()) return target(arguments...);
  c.unlock();
  if constexpr (std::is_void_v<Result>) {
    target(arguments...);
    const int code = errno;
    c.lock();
    c.carried_out();
    errno = code;
  } else {
    Result answer = target(arguments...);
    const int code = errno;
    c.lock();
    if constexpr (std::is_pointer_v<Result>) {
      if (answer) c.carried_out(answer);
    } else if (answer == 0) {
      c.carried_out();
      answer = static_cast<Result>(c.concluded());
    }
    errno = code;
    return answer;
  }
}

/// A function of libibverbs that takes no object, and that no session looks at.
template <class Result, class... Arguments>
Result call_real(const char* name, Arguments... arguments) noexcept {
  auto* target = real::verbs_function<Result(Arguments...)>(name);
  return target ? target(arguments...) : without_function<Result>();
}

/// An exported function of libibverbs.
template <class Result, class... Arguments>
Result forward(call& c, const char* name, Arguments... arguments) noexcept {
  if (!c.is_admitted()) return refusal<Result>(c);
  return carry_out(c, real::verbs_function<Result(Arguments...)>(name), arguments...);
}

[[nodiscard]] inline const ibv_context& context_of(const ibv_context* context) noexcept {
  return *context;
}
template <class Object>
[[nodiscard]] const ibv_context& context_of(const Object* object) noexcept {
  return *object->context;
}

/// An operation of the context of what the verb is called on, which is looked at only once it is
/// known to be alive.
template <class Result, class Object, class... Parameters>
Result forward(call& c, Result (*verbs_context::*operation)(Object*, Parameters...),
               std::type_identity_t<Object>* subject,
               std::type_identity_t<Parameters>... arguments) noexcept {
  if (!c.is_admitted()) return refusal<Result>(c);
  return carry_out(c, original_operations(context_of(subject)).*operation, subject, arguments...);
}
template <class Result, class Object, class... Parameters>
Result forward(call& c, Result (*ibv_context_ops::*operation)(Object*, Parameters...),
               std::type_identity_t<Object>* subject,
               std::type_identity_t<Parameters>... arguments) noexcept {
  if (!c.is_admitted()) return refusal<Result>(c);
  return carry_out(c, original_operations(context_of(subject)).context.ops.*operation, subject,
                   arguments...);
}

}  // namespace ibvxx::shim
