// Calls to the real libibverbs: all of them where no session is in force, and, after rules and
// ledger checks, those of a session that forwards.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <type_traits>

#include "core/call.hpp"
#include "core/request_list.hpp"
#include "forward/operations.hpp"
#include "forward/real_library.hpp"

namespace ibvxx::shim {

/// Called before the real call. False if a rule makes it fail, or if its object is destroyed (a
/// finding). For a destroy that would wait for ever, adds a finding and makes the missing
/// acknowledgements, so that it returns.
[[nodiscard]] bool admit(call& c);
/// Called after the real call: records the object that it made or destroyed.
void record_outcome(call& c, const void* made = nullptr) noexcept;

/// What a refused call returns, by the convention of its verb.
template <class Result>
[[nodiscard]] Result refusal(const call& c) noexcept {
  if constexpr (std::is_pointer_v<Result>)
    return c.refuse_pointer();
  else if constexpr (!std::is_void_v<Result>)
    return static_cast<Result>(c.refuse_by_convention());
}

/// What a verb returns where the installed library lacks the function: ENOSYS.
template <class Result>
Result without_function() noexcept {
  errno = ENOSYS;
  if constexpr (std::is_pointer_v<Result>)
    return nullptr;
  else if constexpr (!std::is_void_v<Result>)
    return static_cast<Result>(ENOSYS);
}

/// Calls the real function, null where there is none. In a session the engine's lock is released
/// while it runs, and what it made or ended is recorded. May be a cancellation point.
template <class Result, class... Parameters>
Result carry_out(call& c, Result (*target)(Parameters...),
                 std::type_identity_t<Parameters>... arguments) {
  if (!target) return without_function<Result>();
  if (!c.is_seen()) {
    expect_unlocked(name(c.which()));
    return target(arguments...);
  }
  if constexpr (std::is_void_v<Result>) {
    int code = 0;
    {
      const call::released running(c);
      expect_unlocked(name(c.which()));
      target(arguments...);
      code = errno;
    }
    record_outcome(c);
    errno = code;
  } else {
    Result answer{};
    int code = 0;
    {
      const call::released running(c);
      expect_unlocked(name(c.which()));
      answer = target(arguments...);
      code = errno;
    }
    if constexpr (std::is_pointer_v<Result>) {
      if (answer) record_outcome(c, answer);
    } else if (answer == 0) {
      record_outcome(c);
      answer = static_cast<Result>(c.concluded());
    }
    errno = code;
    return answer;
  }
}

/// Calls an exported function of libibverbs that no session records.
template <class Result, class... Arguments>
Result call_real(const char* name, Arguments... arguments) {
  auto* target = real_function<Result(Arguments...)>(name);
  expect_unlocked(name);
  return target ? target(arguments...) : without_function<Result>();
}

// The forms in which an entry of intercept/ names a real operation: an exported function, a slot of
// ibv_context_ops, verbs_context or object_operations, or a function of forward/recorded_verbs.hpp,
// for verbs of which more than their object is recorded.

/// A function that libibverbs exports.
struct exported {
  const char* name;
};
/// A slot whose verb takes a list of requests.
template <class Slot>
struct list_operation {
  Slot slot;
};
template <class Slot>
list_operation(Slot) -> list_operation<Slot>;

[[nodiscard]] inline const ibv_context& context_of(const ibv_context* context) noexcept {
  return *context;
}
template <class Object>
[[nodiscard]] const ibv_context& context_of(const Object* object) noexcept {
  return *object->context;
}

/// The real operation. The subject must be alive: it is dereferenced.
template <class Function, class Object>
[[nodiscard]] Function* find_operation(Function* verbs_context::*slot, Object* subject) noexcept {
  return original_operations(context_of(subject)).*slot;
}
template <class Function, class Object>
[[nodiscard]] Function* find_operation(Function* ibv_context_ops::*slot, Object* subject) noexcept {
  return original_operations(context_of(subject)).context.ops.*slot;
}
template <class Function, class Object>
[[nodiscard]] Function* find_operation(Function* object_operations::*slot,
                                       Object* subject) noexcept {
  return original_operations(static_cast<const void*>(subject)).*slot;
}

template <class Result, class... Arguments>
Result forward(call& c, exported function, Arguments... arguments) {
  if (!admit(c)) return refusal<Result>(c);
  return carry_out(c, real_function<Result(Arguments...)>(function.name), arguments...);
}

template <class Result, class Operations, class Object, class... Rest>
Result forward(call& c, Result (*Operations::*slot)(Object*, Rest...), Object* subject,
               std::type_identity_t<Rest>... rest) {
  if (!admit(c)) return refusal<Result>(c);
  return carry_out(c, find_operation(slot, subject), subject, rest...);
}

template <class Result, class... Parameters>
Result forward(call& c, Result (*recorded)(call&, Parameters...),
               std::type_identity_t<Parameters>... arguments) {
  return recorded(c, arguments...);
}

/// Posts the requests before the one that a rule refuses.
template <class Result, class Operations, class Object, class Request>
int forward(call& c, list_operation<int (*Operations::*)(Object*, Request*, Request**)> post,
            Object* subject, Request* list, Request** bad) {
  Request* before = nullptr;
  Request* refused = c.refuses_some_request() ? list : nullptr;
  for (std::size_t place = 1; refused && !c.refuses_request(place); ++place) {
    before = refused;
    refused = refused->next;
  }
  if (!admit(c)) return refuse(list, bad, refusal<int>(c));
  if (refused && !before) return refuse(list, bad, c.refusal_of_request());
  if (refused) before->next = nullptr;
  const int code = carry_out(c, find_operation(post.slot, subject), subject, list, bad);
  if (!refused) return code;
  before->next = refused;
  return code != 0 ? code : refuse(refused, bad, c.refusal_of_request());
}

}  // namespace ibvxx::shim
