#include "fault_plan.hpp"

#include <ibvxx/error.hpp>

namespace ibvxx::shim {

std::string describe(const fault_rule& rule) {
  std::string text = name(rule.call);
  if (rule.index != 0)
    text += " (call " + std::to_string(rule.index) + ")";
  else
    text += ", matching call " + std::to_string(rule.nth);
  const char* code = errno_name(rule.code);
  text += std::string(" -> ") + (code ? code : std::to_string(rule.code).c_str());
  if (rule.times == UINT64_MAX) return text + ", and every later one";
  return rule.times == 1 ? text + ", once" : text + ", " + std::to_string(rule.times) + " times";
}

int fault_plan::decide(verb call, std::uint64_t index, const void* object) noexcept {
  int decision = 0;
  for (fault_rule& rule : rules_) {
    if (rule.call != call || (rule.object && rule.object != object)) continue;
    if (rule.thread != std::thread::id{} && rule.thread != std::this_thread::get_id()) continue;
    if (rule.index != 0 && index < rule.index) continue;
    ++rule.seen;
    const bool due = rule.seen >= rule.nth && rule.seen - rule.nth < rule.times;
    if (!due || (rule.index != 0 && rule.times == 1 && index != rule.index)) continue;
    ++rule.fired;
    if (decision == 0) decision = rule.code;
  }
  return decision;
}

}  // namespace ibvxx::shim
