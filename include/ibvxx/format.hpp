// fmt formatters for what ibvxx and verbs speak of.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>

#include <ibvxx/context.hpp>
#include <ibvxx/error.hpp>
#include <string_view>

namespace ibvxx {

/// The text form of a GID, as an IPv6 address; IPv4-mapped GIDs end in the dotted form.
struct gid_text {
  explicit gid_text(const ibv_gid& gid) noexcept {
    ::inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  }
  char text[INET6_ADDRSTRLEN] = {};
};

}  // namespace ibvxx

template <>
struct fmt::formatter<ibvxx::verb> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(ibvxx::verb v, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(ibvxx::name(v), context);
  }
};

template <>
struct fmt::formatter<ibvxx::error> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const ibvxx::error& e, Context& context) const {
    char line[ibvxx::error::max_message];
    return fmt::formatter<fmt::string_view>::format({line, e.message_to(line, sizeof line)},
                                                    context);
  }
};

template <>
struct fmt::formatter<ibvxx::context_state> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(ibvxx::context_state state, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(ibvxx::name(state), context);
  }
};

template <>
struct fmt::formatter<ibv_gid> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const ibv_gid& gid, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(ibvxx::gid_text(gid).text, context);
  }
};
