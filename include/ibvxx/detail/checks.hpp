// Shared by the wrappers of verbs: the result of a call that returns a pointer, and argument checks
// before a call.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/handle.hpp>
#include <initializer_list>

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Calls `create`, a verb that returns a pointer, or null with errno set, and owns the result.
/// errno is cleared before the call and read directly after it.
template <class Owner, class Create>
[[nodiscard]] result<Owner> obtain(verb call, const ibv_context* context,
                                   Create&& create) noexcept {
  errno = 0;
  if (Owner owner{create()}) [[likely]]
    return owner;
  return failure(error(call, errno).on(context));
}

/// The EINVAL of an argument check, on a device that is known; the caller adds the explanation.
[[nodiscard, gnu::cold]] inline error refusal(verb call, const ibv_context* context) noexcept {
  error e(call, EINVAL);
  return e.on(context);
}

/// EINVAL for a null pointer, naming the argument and the device.
[[nodiscard, gnu::cold]] inline failure null_argument(verb call, const ibv_context* context,
                                                      const char* argument) noexcept {
  return failure(refusal(call, context).explain("%s is null", argument));
}

/// Refuses a port outside 1..255: ports count from 1, and most verbs have 8 bits for them.
[[nodiscard]] inline result<void> check_port(verb call, const ibv_context* context,
                                             int port) noexcept {
  if (port >= 1 && port <= 255) [[likely]]
    return {};
  return failure(refusal(call, context).explain("port %d is outside 1..255", port));
}

/// Refuses a count that does not fit into the 32 bits of the verb.
[[nodiscard]] inline result<void> check_count(verb call, const ibv_context* context,
                                              const char* argument, std::size_t count) noexcept {
  if (count <= UINT32_MAX) [[likely]]
    return {};
  return failure(refusal(call, context)
                     .explain("%s %zu is above the limit of %u", argument, count, UINT32_MAX));
}

/// A requested size and the device's limit.
struct asked_size {
  const char* name;
  std::uint64_t asked;
  std::uint64_t limit;
};

/// Converts a limit of ibv_device_attr, which is a signed number that should not be negative.
[[nodiscard]] constexpr std::uint64_t device_limit(int limit) noexcept {
  return limit > 0 ? static_cast<std::uint64_t>(limit) : 0;
}

/// Explains a failure by the first size above its limit; false if there is none.
[[gnu::cold]] inline bool explain_excess(error& e,
                                         std::initializer_list<asked_size> sizes) noexcept {
  for (const asked_size& size : sizes) {
    if (size.asked <= size.limit) continue;
    e.explain("%s %llu is above the device's limit of %llu", size.name,
              static_cast<unsigned long long>(size.asked),
              static_cast<unsigned long long>(size.limit));
    return true;
  }
  return false;
}

/// True for the errnos with which providers refuse a size: EINVAL most of them, ENOMEM or ENOSPC
/// some.
[[nodiscard]] inline bool blames_sizes(const error& e) noexcept {
  return e.code() == EINVAL || e.code() == ENOMEM || e.code() == ENOSPC;
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
