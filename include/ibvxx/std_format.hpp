// std::format formatters for the types of format.hpp. If the standard library has no std::format
// (GCC before 13), this header declares nothing.
#pragma once

#include <ibvxx/context_state.hpp>
#include <ibvxx/detail/format_text.hpp>
#include <ibvxx/error.hpp>
#include <ibvxx/verb.hpp>
#include <string_view>
#include <version>

#if defined(__cpp_lib_format) && __cpp_lib_format >= 201907L
#include <format>

namespace ibvxx::detail {

template <class T>
struct std_formatter : std::formatter<std::string_view> {
  template <class Context>
  auto format(const T& value, Context& context) const {
    const auto text = text_of(value);
    return std::formatter<std::string_view>::format(text, context);
  }
};

}  // namespace ibvxx::detail

template <>
struct std::formatter<ibvxx::verb> : ibvxx::detail::std_formatter<ibvxx::verb> {};
template <>
struct std::formatter<ibvxx::error> : ibvxx::detail::std_formatter<ibvxx::error> {};
template <>
struct std::formatter<ibvxx::context_state> : ibvxx::detail::std_formatter<ibvxx::context_state> {};
template <>
struct std::formatter<ibv_gid> : ibvxx::detail::std_formatter<ibv_gid> {};

#endif
