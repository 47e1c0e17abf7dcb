// What the wrappers share: how a pointer verb reports, and the refusals made before a verb is
// called.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/handle.hpp>
#include <initializer_list>

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Runs `create`, a verb that returns a pointer, or null with the reason in errno, and takes what
/// it made. errno is cleared before and read before anything else can change it.
template <class Owner, class Create>
[[nodiscard]] result<Owner> obtain(verb call, const ibv_context* context,
                                   Create&& create) noexcept {
  errno = 0;
  if (Owner owner{create()}) [[likely]]
    return owner;
  return failure(error(call, errno).on(context));
}

/// The start of a refusal made before the verb is called: EINVAL, to be explained.
[[nodiscard, gnu::cold]] inline error refusal(verb call, const ibv_context* context) noexcept {
  error e(call, EINVAL);
  return e.on(context);
}

/// The refusal of a null pointer, on a device that is known.
[[nodiscard, gnu::cold]] inline failure null_argument(verb call, const ibv_context* context,
                                                      const char* argument) noexcept {
  return failure(refusal(call, context).explain("%s is null", argument));
}

/// Ports count from 1, and most verbs have 8 bits for them.
[[nodiscard]] inline result<void> check_port(verb call, const ibv_context* context,
                                             int port) noexcept {
  if (port >= 1 && port <= 255) [[likely]]
    return {};
  return failure(refusal(call, context).explain("port %d is outside 1..255", port));
}

/// A count for which the verb has 32 bits.
[[nodiscard]] inline result<void> check_count(verb call, const ibv_context* context,
                                              const char* argument, std::size_t count) noexcept {
  if (count <= UINT32_MAX) [[likely]]
    return {};
  return failure(refusal(call, context)
                     .explain("%s %zu is above the limit of %u", argument, count, UINT32_MAX));
}

/// A size that was asked for, and what the device offers.
struct asked_size {
  const char* name;
  std::uint64_t asked;
  std::uint64_t limit;
};

/// A device limit as ibv_device_attr holds it: a signed number, and never meant below 0.
[[nodiscard]] constexpr std::uint64_t device_limit(int limit) noexcept {
  return limit > 0 ? static_cast<std::uint64_t>(limit) : 0;
}

/// After a failure: names the first size above its limit, or returns false where none is.
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

/// The errnos by which providers refuse a size: EINVAL most of them, ENOMEM or ENOSPC some.
[[nodiscard]] inline bool blames_sizes(const error& e) noexcept {
  return e.code() == EINVAL || e.code() == ENOMEM || e.code() == ENOSPC;
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
