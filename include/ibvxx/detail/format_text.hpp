// The text forms that format.hpp and std_format.hpp use.
#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <ibvxx/context_state.hpp>
#include <ibvxx/error.hpp>
#include <ibvxx/verb.hpp>
#include <string_view>

namespace ibvxx {

/// The text form of a GID, as an IPv6 address; IPv4-mapped GIDs end in the dotted form.
struct gid_text {
  explicit gid_text(const ibv_gid& gid) noexcept {
    ::inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  }
  operator std::string_view() const noexcept { return text; }
  char text[INET6_ADDRSTRLEN] = {};
};

namespace detail {

struct error_text {
  explicit error_text(const error& e) noexcept : size(e.message_to(text, sizeof text)) {}
  operator std::string_view() const noexcept { return {text, size}; }
  char text[error::max_message];
  std::size_t size;
};

// Each result converts to a std::string_view, and must outlive it.
[[nodiscard]] inline error_text text_of(const error& e) noexcept {
  return error_text(e);
}
[[nodiscard]] inline gid_text text_of(const ibv_gid& gid) noexcept {
  return gid_text(gid);
}
[[nodiscard]] constexpr std::string_view text_of(verb v) noexcept {
  return name(v);
}
[[nodiscard]] constexpr std::string_view text_of(context_state state) noexcept {
  return name(state);
}

}  // namespace detail

}  // namespace ibvxx
