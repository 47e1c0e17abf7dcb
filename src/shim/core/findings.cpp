#include "core/findings.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "core/ledger.hpp"

namespace ibvxx::shim {
namespace {

struct words {
  finding_kind kind;
  const char* name;
  const char* advice;
};

// In the order of the enumeration.
constexpr words dictionary[] = {
    {finding_kind::leak, "leak", "destroy it before what it was made from, or give it an owner"},
    {finding_kind::descriptor_leak, "descriptor leak", "close it, or give it to a unique_fd"},
    {finding_kind::double_destroy, "double destroy",
     "give the object one owner, and clear the pointer when it is destroyed"},
    {finding_kind::use_after_destroy, "use after destroy",
     "let the object outlive its users, or stop them first"},
    {finding_kind::destroyed_in_use, "destroyed in use",
     "destroy in the reverse order of creation"},
    {finding_kind::foreign_pointer, "foreign pointer",
     "check what the creating verb returned before it is used, and initialise pointers"},
    {finding_kind::wrong_kind, "wrong kind of object", "look for a cast, or for a void pointer"},
    {finding_kind::double_close, "double close",
     "give the descriptor one owner: the number may belong to another file by then"},
    {finding_kind::unacknowledged_events, "unacknowledged events",
     "acknowledge what was read, to the object that the event names, before destroying that"},
    {finding_kind::over_acknowledged_events, "over-acknowledged events",
     "acknowledge each event once, to the object that it names"},
    {finding_kind::unbalanced_batch, "unbalanced batch",
     "end what was begun, on every path, and begin nothing twice"},
    {finding_kind::unfired_rule, "unfired rule",
     "let the test make the call, or take the rule back with clear_rules()"},
    {finding_kind::wrong_thread, "wrong thread",
     "give each thread its own objects, or serialise their use"},
    {finding_kind::wrong_state, "wrong state",
     "post once the queue pair is in a state that takes the request"},
    {finding_kind::wrong_memory, "wrong memory",
     "name memory that is registered in the queue pair's domain, with the access that is needed"},
    {finding_kind::undersized_cq, "undersized CQ",
     "create the CQ with room for all that its queues can have outstanding, or post less"},
    {finding_kind::memory_in_use, "memory in use",
     "wait for the completions, or destroy the queue pair first"},
    {finding_kind::buffer_reused, "buffer reused",
     "post a buffer again only after the completion of the receive that has it"},
};
static_assert(std::size(dictionary) == finding_kind_count);

[[nodiscard]] const words* words_for(finding_kind kind) noexcept {
  const auto i = static_cast<std::size_t>(kind);
  return i < finding_kind_count ? &dictionary[i] : nullptr;
}

/// What equal findings have in common. Numbers that stand alone are left out: those of calls and
/// requests, and counts. Those of objects do not stand alone ("QP#3").
[[nodiscard]] std::string identity(finding_kind kind, const std::string& text,
                                   const call_stack* stack) {
  const auto is_digit = [](char c) noexcept { return c >= '0' && c <= '9'; };
  std::string common(1, static_cast<char>(kind));
  // A rule is described by its numbers.
  const bool all = kind == finding_kind::unfired_rule;
  for (std::size_t i = 0; i < text.size(); ++i) {
    common += text[i];
    if (all || text[i] != ' ') continue;
    std::size_t end = i + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == text.size() || text[end] != 'x') i = end - 1;  // 0x7f00 stays
  }
  for (int i = 0; stack && i < stack->depth; ++i)
    common += " " + std::to_string(reinterpret_cast<std::uintptr_t>(
                        stack->frames[static_cast<std::size_t>(i)]));
  return common;
}

}  // namespace

const char* name(finding_kind kind) noexcept {
  const words* found = words_for(kind);
  return found ? found->name : "?";
}

const char* advice(finding_kind kind) noexcept {
  const words* found = words_for(kind);
  return found ? found->advice : "?";
}

void finding_log::add(finding_kind kind, std::string text, const record* about) {
  const auto which = static_cast<std::size_t>(kind);
  if (tolerated_[which]) return;
  for (auto one = expected_.begin(); one != expected_.end(); ++one) {
    if (one->kind != kind || text.find(one->containing) == std::string::npos) continue;
    expected_.erase(one);
    return;
  }
  const auto here = call_stacks_ ? capture_call_stack() : nullptr;
  const auto [known, is_new] = places_.try_emplace(identity(kind, text, here.get()), 0);
  if (!is_new) {
    ++entries_[known->second].first.count;
    return;
  }
  if (listed_[which] == most_findings_of_a_kind) {
    places_.erase(known);
    ++unlisted_[which];
    return;
  }
  ++listed_[which];
  known->second = entries_.size();
  const std::size_t misuse_length = text.size();
  text += std::string(": ") + advice(kind);
  if (call_stacks_) {
    if (about && about->made_at)
      text += "\n    " + about->title + " was made at" + to_lines(*about->made_at);
    if (about && about->gone_at)
      text += "\n    " + about->title + " was destroyed at" + to_lines(*about->gone_at);
    text += "\n    found at" + to_lines(*here);
  }
  entries_.push_back({{kind, std::move(text)}, misuse_length});
}

std::vector<finding> finding_log::all() const {
  std::vector<finding> list;
  list.reserve(entries_.size());
  for (const entry& one : entries_) {
    finding& copy = list.emplace_back(one.first);
    if (copy.count != 1)
      copy.text.insert(one.misuse_length, " (" + std::to_string(copy.count) + " times)");
  }
  for (std::size_t which = 0; which < finding_kind_count; ++which) {
    if (unlisted_[which] == 0) continue;
    const auto kind = static_cast<finding_kind>(which);
    list.push_back({kind,
                    std::to_string(unlisted_[which]) +
                        " more, which are not listed after the first " +
                        std::to_string(most_findings_of_a_kind) + ": " + advice(kind),
                    unlisted_[which]});
  }
  return list;
}

void finding_log::find_unmet_expectations() {
  for (const expectation& one : std::exchange(expected_, {}))
    add(finding_kind::unfired_rule,
        std::string("a finding of the kind \"") + name(one.kind) + "\"" +
            (one.containing.empty() ? "" : ", containing \"" + one.containing + "\",") +
            " was expected and did not occur");
}

}  // namespace ibvxx::shim
