// The report of a sweep, as text and as JSON lines.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ibvxx/error.hpp>
#include <ibvxx/shim/sweep.hpp>
#include <string_view>
#include <utility>

#include "core/verb_table.hpp"

namespace ibvxx::shim {
namespace {

/// Appends a JSON string (RFC 8259, section 7).
void add_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}
/// Appends a member to a JSON object that has one already.
void add_member(std::string& out, const char* key, std::string_view text) {
  out += ",\"";
  out += key;
  out += "\":";
  add_quoted(out, text);
}
void add_member(std::string& out, const char* key, std::size_t number) {
  out += ",\"";
  out += key;
  out += "\":" + std::to_string(number);
}
void add_member(std::string& out, const char* key, bool value) {
  out += ",\"";
  out += key;
  out += value ? "\":true" : "\":false";
}

void add_errnos(std::string& out, verb call) {
  out += ",\"errnos\":[";
  bool first = true;
  for (const int code : row_of(call).errnos) {
    if (!std::exchange(first, false)) out += ',';
    const char* known = errno_name(code);
    add_quoted(out, known ? std::string(known) : std::to_string(code));
  }
  out += ']';
}

/// Calls `add` with each verb that was swept, and how often.
template <class Add>
void for_each_verb(const sweep_report& report, Add&& add) {
  for (std::size_t v = 0; v < verb_count; ++v) {
    const auto one = static_cast<verb>(v);
    if (const auto count = std::count(report.calls.begin(), report.calls.end(), one); count != 0)
      add(one, static_cast<std::size_t>(count));
  }
}

}  // namespace

const char* name(sweep_failure_kind kind) noexcept {
  switch (kind) {
    case sweep_failure_kind::body_failed:
      return "body failed";
    case sweep_failure_kind::foreign_exception:
      return "foreign exception";
    case sweep_failure_kind::left_alive:
      return "left alive";
    case sweep_failure_kind::misuse:
      return "misuse";
    case sweep_failure_kind::not_reported:
      return "not reported";
    case sweep_failure_kind::other_error:
      return "other error";
    case sweep_failure_kind::never_fired:
      return "never fired";
  }
  return "?";
}

std::string sweep_report::text() const {
  std::string lines = replayed ? std::string("1 run, replayed") : std::to_string(runs) + " runs";
  lines += " over " + std::to_string(calls.size()) + " calls:\n";
  for_each_verb(*this, [&lines](verb one, std::size_t count) {
    lines += "  " + std::to_string(count) + " x " + name(one);
    if (row_of(one).errnos.empty()) lines += " (cannot fail)";
    lines += "\n";
  });
  if (!stopped.empty()) lines += "stopped: " + stopped + "\n";
  if (failures.empty()) return lines + (clean() ? "clean\n" : "nothing was injected\n");
  lines += std::to_string(failures.size()) + " failure(s):\n";
  // The worst first; those of one kind in the order of the runs.
  std::vector<sweep_failure> sorted = failures;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.kind < b.kind; });
  for (const sweep_failure& failure : sorted) {
    lines += "  injected " + failure.injected + ": " + failure.what + "\n";
    if (!failure.replay.empty() && !replayed)
      lines += "    again: IBVXX_REPLAY=\"" + failure.replay + "\"\n";
  }
  return lines;
}

std::string sweep_report::json_lines() const {
  std::string lines = "{\"type\":\"summary\"";
  add_member(lines, "runs", runs);
  add_member(lines, "calls", calls.size());
  add_member(lines, "failures", failures.size());
  add_member(lines, "clean", clean());
  add_member(lines, "replayed", replayed);
  add_member(lines, "stopped", std::string_view(stopped));
  lines += "}\n";
  for_each_verb(*this, [&lines](verb one, std::size_t count) {
    lines += "{\"type\":\"verb\"";
    add_member(lines, "verb", std::string_view(name(one)));
    add_member(lines, "calls", count);
    add_errnos(lines, one);
    lines += "}\n";
  });
  for (const sweep_failure& failure : failures) {
    lines += "{\"type\":\"failure\"";
    add_member(lines, "kind", std::string_view(name(failure.kind)));
    add_member(lines, "injected", std::string_view(failure.injected));
    add_member(lines, "what", std::string_view(failure.what));
    add_member(lines, "replay", std::string_view(failure.replay));
    lines += "}\n";
  }
  return lines;
}

}  // namespace ibvxx::shim
