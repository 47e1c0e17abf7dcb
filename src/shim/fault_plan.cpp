#include "fault_plan.hpp"

#include <ibvxx/error.hpp>

namespace ibvxx::shim {

std::string describe(const fault_rule& rule) {
  std::string text = name(rule.call);
  if (rule.index != 0)
    text += " (call " + std::to_string(rule.index) + ")";
  else
    text += ", matching call " + std::to_string(rule.nth);
  if (rule.action) return text + " -> action";
  const char* code = errno_name(rule.code);
  text += " -> " + (code ? std::string(code) : std::to_string(rule.code));
  if (rule.times == UINT64_MAX) return text + ", and every later one";
  return rule.times == 1 ? text + ", once" : text + ", " + std::to_string(rule.times) + " times";
}

decision fault_plan::decide(verb call, std::uint64_t index, const void* object) {
  decision decided;
  for (fault_rule& rule : rules_) {
    if (rule.call != call || (rule.object && rule.object != object)) continue;
    if (rule.thread != std::thread::id{} && rule.thread != std::this_thread::get_id()) continue;
    if (rule.index != 0 && index < rule.index) continue;
    ++rule.seen;
    const bool due = rule.seen >= rule.nth && rule.seen - rule.nth < rule.times;
    if (!due || (rule.index != 0 && rule.times == 1 && index != rule.index)) continue;
    ++rule.fired;
    if (decided.code == 0) decided.code = rule.code;
    if (!decided.action) decided.action = rule.action;
  }
  return decided;
}

}  // namespace ibvxx::shim
