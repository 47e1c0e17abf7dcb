#include "session/sweep_replay.hpp"

#include <charconv>
#include <cstdint>
#include <ibvxx/error.hpp>
#include <stdexcept>

#include "core/verb_table.hpp"

namespace ibvxx::shim {
namespace {

[[noreturn]] void refuse_replay(std::string_view part, const char* why) {
  throw std::logic_error("shim: replay \"" + std::string(part) + "\" " + why +
                         "; it looks like \"ibv_create_cq@2=ENOMEM,once\"");
}

[[nodiscard]] verb verb_called(std::string_view called, std::string_view part) {
  for (std::size_t v = 0; v < verb_count; ++v) {
    const auto one = static_cast<verb>(v);
    if (called == name(one) && !row_of(one).errnos.empty()) return one;
  }
  refuse_replay(part, "names no verb that a sweep fails");
}

/// The number that the whole text is; 0 if it is none.
[[nodiscard]] std::uint64_t number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() ? value : 0;
}

[[nodiscard]] int errno_called(std::string_view called, std::string_view part) {
  constexpr int beyond = 4096;
  for (int code = 1; code < beyond; ++code)
    if (const char* known = errno_name(code); known && called == known) return code;
  const std::uint64_t code = number(called);
  if (code == 0 || code >= beyond) refuse_replay(part, "names no errno");
  return static_cast<int>(code);
}

[[nodiscard]] fault_rule rule_of(std::string_view part) {
  const std::size_t at = part.find('@');
  const std::size_t equals = part.find('=', at == part.npos ? 0 : at);
  const std::size_t comma = part.find(',', equals == part.npos ? 0 : equals);
  if (at == part.npos || equals == part.npos || comma == part.npos)
    refuse_replay(part, "lacks a part");
  fault_rule rule;
  rule.fails = true;
  rule.call = verb_called(part.substr(0, at), part);
  const std::string_view address = part.substr(at + 1, equals - at - 1);
  const std::size_t slash = address.find("/t");
  rule.address.call = rule.call;
  rule.address.number = number(address.substr(0, slash));
  if (slash != address.npos) {
    const std::uint64_t thread = number(address.substr(slash + 2));
    if (thread == 0 || thread > UINT32_MAX)
      refuse_replay(part, "has no number of a thread, which count from 1");
    rule.address.thread = static_cast<unsigned>(thread);
  }
  if (rule.address.number == 0) refuse_replay(part, "has no number of a call, which count from 1");
  rule.code = errno_called(part.substr(equals + 1, comma - equals - 1), part);
  const std::string_view times = part.substr(comma + 1);
  if (times != "once" && times != "always")
    refuse_replay(part, "ends with neither once nor always");
  rule.times = times == "once" ? 1 : UINT64_MAX;
  return rule;
}

}  // namespace

std::string to_replay(const std::vector<fault_rule>& rules) {
  std::string line;
  for (const fault_rule& rule : rules) {
    const char* known = errno_name(rule.code);
    if (!line.empty()) line += ';';
    line += describe(rule.address) + '=';
    line += known ? known : std::to_string(rule.code);
    line += rule.times == 1 ? ",once" : ",always";
  }
  return line;
}

std::vector<fault_rule> from_replay(std::string_view line) {
  std::vector<fault_rule> rules;
  while (!line.empty()) {
    const std::size_t end = line.find(';');
    rules.push_back(rule_of(line.substr(0, end)));
    line = end == line.npos ? std::string_view() : line.substr(end + 1);
  }
  return rules;
}

}  // namespace ibvxx::shim
