// fmt formatters for verb, error, context_state and ibv_gid. They take the format specification of
// a string: "{:>10}".
#pragma once

#include <fmt/format.h>

#include <ibvxx/context_state.hpp>
#include <ibvxx/detail/format_text.hpp>
#include <ibvxx/error.hpp>
#include <ibvxx/verb.hpp>
#include <string_view>

namespace ibvxx::detail {

template <class T>
struct fmt_formatter : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const T& value, Context& context) const {
    const auto text = text_of(value);
    const std::string_view view = text;
    return fmt::formatter<fmt::string_view>::format({view.data(), view.size()}, context);
  }
};

}  // namespace ibvxx::detail

template <>
struct fmt::formatter<ibvxx::verb> : ibvxx::detail::fmt_formatter<ibvxx::verb> {};
template <>
struct fmt::formatter<ibvxx::error> : ibvxx::detail::fmt_formatter<ibvxx::error> {};
template <>
struct fmt::formatter<ibvxx::context_state> : ibvxx::detail::fmt_formatter<ibvxx::context_state> {};
template <>
struct fmt::formatter<ibv_gid> : ibvxx::detail::fmt_formatter<ibv_gid> {};
