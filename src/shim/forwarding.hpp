// Calls that go on to the real library: all of them without a session, and those of a session that
// forwards after it has had its say.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <type_traits>
#include <utility>

#include "engine.hpp"
#include "real.hpp"

namespace ibvxx::shim {

/// The operations of a real context as they were before the shim's took their place.
[[nodiscard]] const verbs_context& original_operations(const ibv_context& context) noexcept;

/// verbs.h calls many verbs through the context: from now on those come to the shim as well.
void intercept_operations(ibv_context& context);

/// And some through the object itself: an extended CQ or queue pair, a work queue, device memory.
struct object_operations {
  decltype(ibv_cq_ex::start_poll) start_poll = nullptr;
  decltype(ibv_cq_ex::next_poll) next_poll = nullptr;
  decltype(ibv_cq_ex::end_poll) end_poll = nullptr;
  decltype(ibv_qp_ex::wr_start) wr_start = nullptr;
  decltype(ibv_qp_ex::wr_complete) wr_complete = nullptr;
  decltype(ibv_qp_ex::wr_abort) wr_abort = nullptr;
  decltype(ibv_wq::post_recv) post_recv = nullptr;
  decltype(ibv_dm::memcpy_to_dm) memcpy_to_dm = nullptr;
  decltype(ibv_dm::memcpy_from_dm) memcpy_from_dm = nullptr;
};
void remember_operations(const void* object, const object_operations& operations);
/// Puts the shim's function in the place of a real one, and returns that; what is not there stays
/// so.
template <class Function>
Function* replace(Function*& slot, std::type_identity_t<Function>* ours) noexcept {
  return slot ? std::exchange(slot, ours) : nullptr;
}
/// Those of a real object as they were before the shim's took their place.
[[nodiscard]] const object_operations& original_operations(const void* object) noexcept;

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

/// An operation of the object itself.
template <class Result, class Object, class... Parameters>
Result forward(call& c, Result (*object_operations::*operation)(Object*, Parameters...),
               std::type_identity_t<Object>* subject,
               std::type_identity_t<Parameters>... arguments) noexcept {
  if (!c.is_admitted()) return refusal<Result>(c);
  return carry_out(c, original_operations(static_cast<const void*>(subject)).*operation, subject,
                   arguments...);
}

/// Refuses a list of requests from this one on.
template <class Request>
int refuse(Request* one, Request** bad, int code) noexcept {
  if (bad) *bad = one;
  return code;
}

/// A verb that takes a list of requests: those before one that a rule refuses are carried out.
template <class Operations, class Object, class Request>
int forward_list(call& c, int (*Operations::*post)(Object*, Request*, Request**), Object* subject,
                 Request* list, Request** bad) noexcept {
  Request* before = nullptr;
  Request* refused = c.refuses_some_request() ? list : nullptr;
  for (std::size_t place = 1; refused && !c.refuses_request(place); ++place) {
    before = refused;
    refused = refused->next;
  }
  if (!refused) {
    const int code = forward(c, post, subject, list, bad);
    return c.was_refused() ? refuse(list, bad, code) : code;
  }
  if (!before) return refuse(list, bad, c.is_admitted() ? c.refusal_of_request() : EINVAL);
  before->next = nullptr;
  const int code = forward(c, post, subject, list, bad);
  before->next = refused;
  return code != 0 ? code : refuse(refused, bad, c.refusal_of_request());
}

}  // namespace ibvxx::shim
