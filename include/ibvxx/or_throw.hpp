// Exceptions in place of results. No other header of ibvxx throws.
#pragma once

#include <ibvxx/result.hpp>
#include <system_error>
#include <type_traits>
#include <utility>

namespace ibvxx {

// Not in the namespace of the kind of result: it contains none, and what one part of a program
// throws must be caught by a part that is compiled for another C++.

/// A std::system_error in the generic category that also has the ibvxx::error.
class [[gnu::visibility("default")]] exception : public std::system_error {
 public:
  explicit exception(const ibvxx::error& cause)
      : std::system_error(cause.code(), std::generic_category(), cause.message()), cause_(cause) {}
  [[nodiscard]] const ibvxx::error& cause() const noexcept {
    return cause_;
  }

 private:
  ibvxx::error cause_;
};

}  // namespace ibvxx

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Returns the value, or throws ibvxx::exception.
template <class T>
T or_throw(result<T> outcome) {
  if (!outcome) throw exception(outcome.error());
  if constexpr (!std::is_void_v<T>) return std::move(*outcome);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
