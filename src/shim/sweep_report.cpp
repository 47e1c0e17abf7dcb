// What a sweep saw, for people and for programs.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ibvxx/error.hpp>
#include <ibvxx/shim/sweep.hpp>
#include <string_view>

#include "verb_facts.hpp"

namespace ibvxx::shim {
namespace {

/// A JSON string (RFC 8259, section 7).
[[nodiscard]] std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

[[nodiscard]] std::string errnos_of(verb call) {
  std::string list;
  for (const int code : facts_of(call).errnos) {
    const char* known = errno_name(code);
    list += (list.empty() ? "" : ",") + quoted(known ? known : std::to_string(code));
  }
  return "[" + list + "]";
}

/// Calls `tell` with each verb that was swept, and how often.
template <class Tell>
void for_each_verb(const sweep_report& report, Tell&& tell) {
  for (std::size_t v = 0; v < verb_count; ++v) {
    const auto one = static_cast<verb>(v);
    if (const auto count = std::count(report.calls.begin(), report.calls.end(), one); count != 0)
      tell(one, static_cast<std::size_t>(count));
  }
}

}  // namespace

std::string sweep_report::text() const {
  std::string lines = replayed ? std::string("1 run, replayed") : std::to_string(runs) + " runs";
  lines += " over " + std::to_string(calls.size()) + " calls:\n";
  for_each_verb(*this, [&lines](verb one, std::size_t count) {
    lines += "  " + std::to_string(count) + " x " + name(one);
    if (facts_of(one).errnos.empty()) lines += " (cannot fail)";
    lines += "\n";
  });
  if (failures.empty()) return lines + "clean\n";
  lines += std::to_string(failures.size()) + " failure(s):\n";
  for (const sweep_failure& failure : failures) {
    lines += "  injected " + failure.injected + ": " + failure.what + "\n";
    if (!failure.replay.empty() && !replayed)
      lines += "    again: IBVXX_REPLAY=\"" + failure.replay + "\"\n";
  }
  return lines;
}

std::string sweep_report::json_lines() const {
  std::string lines = "{\"type\":\"summary\",\"runs\":" + std::to_string(runs) +
                      ",\"calls\":" + std::to_string(calls.size()) +
                      ",\"failures\":" + std::to_string(failures.size()) +
                      ",\"clean\":" + (clean() ? "true" : "false") +
                      ",\"replayed\":" + (replayed ? "true" : "false") + "}\n";
  for_each_verb(*this, [&lines](verb one, std::size_t count) {
    lines += "{\"type\":\"verb\",\"verb\":" + quoted(name(one)) +
             ",\"calls\":" + std::to_string(count) + ",\"errnos\":" + errnos_of(one) + "}\n";
  });
  for (const sweep_failure& failure : failures)
    lines += "{\"type\":\"failure\",\"injected\":" + quoted(failure.injected) +
             ",\"what\":" + quoted(failure.what) + ",\"replay\":" + quoted(failure.replay) + "}\n";
  return lines;
}

}  // namespace ibvxx::shim
