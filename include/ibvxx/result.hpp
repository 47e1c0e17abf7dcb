// result<T>: a value or an error. It is std::expected if the standard library has it, otherwise
// tl::expected.
#pragma once

#include <ibvxx/error.hpp>
#include <new>
#include <utility>

#if __has_include(<version>)
#include <version>
#endif

// The two kinds are different types with different layouts. Every declaration with a result in its
// signature is in an inline namespace named after the kind, so that objects of one kind do not link
// with code compiled for the other. The std::expected of libc++ 16 loses errors (measured: they
// arrive as zeros), that of 19 does not; the versions between are not used.
#if defined(__cpp_lib_expected) && __cpp_lib_expected >= 202202L && \
    (!defined(_LIBCPP_VERSION) || _LIBCPP_VERSION >= 190000)
#include <expected>
#define IBVXX_RESULT_KIND std_expected
#define IBVXX_RESULT_IS_STANDARD 1
#elif __has_include(<tl/expected.hpp>)
#include <tl/expected.hpp>
#define IBVXX_RESULT_KIND tl_expected
#define IBVXX_RESULT_IS_STANDARD 0
#else
#error "ibvxx needs std::expected (C++23) or tl/expected.hpp (Debian package libexpected-dev)"
#endif

namespace ibvxx::inline IBVXX_RESULT_KIND {

#if IBVXX_RESULT_IS_STANDARD
template <class T>
using result = std::expected<T, error>;
using failure = std::unexpected<error>;
#else
template <class T>
using result = tl::expected<T, error>;
using failure = tl::unexpected<error>;
#endif

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// EINVAL for a null pointer, naming the argument.
[[nodiscard, gnu::cold]] inline failure null_argument(verb call, const char* argument) noexcept {
  return failure(error(call, EINVAL).explain("%s is null", argument));
}

/// Success if `code` is 0, otherwise the failure of `call` on `context` with that errno, of either
/// sign.
[[nodiscard]] inline result<void> check(verb call, int code, const ibv_context* context) noexcept {
  if (code == 0) [[likely]]
    return {};
  return failure(error(call, code).on(context));
}

/// Runs `work`, which may allocate, and turns bad_alloc into an ENOMEM error. Without exceptions
/// the allocation function ends the program instead.
template <class Work>
[[nodiscard]] auto catching_bad_alloc(Work&& work) noexcept -> decltype(work()) {
#if defined(__cpp_exceptions)
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return failure(error(verb::allocate, ENOMEM));
  }
#else
  return work();
#endif
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
