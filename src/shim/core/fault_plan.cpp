#include "core/fault_plan.hpp"

#include <ibvxx/error.hpp>

namespace ibvxx::shim {
namespace {

[[nodiscard]] std::string failure_of(const fault_rule& rule) {
  if (rule.code == 0) return "null without an errno";
  const char* code = errno_name(rule.code);
  return (rule.negated ? "-" : "") + (code ? std::string(code) : std::to_string(rule.code));
}

}  // namespace

std::string describe(const call_address& address) {
  return std::string(name(address.call)) + "@" + std::to_string(address.number) +
         (address.thread == 1 ? "" : "/t" + std::to_string(address.thread));
}

std::string describe(const fault_rule& rule) {
  std::string text = rule.call == verb::none ? "any verb" : name(rule.call);
  if (rule.address.number != 0)
    text = describe(rule.address);
  else if (rule.index != 0)
    text += " (call " + std::to_string(rule.index) + ")";
  else
    text += ", matching call " + std::to_string(rule.nth);
  if (rule.request != 0) text += ", request " + std::to_string(rule.request);
  text += " -> " + (rule.fails ? failure_of(rule) : "action");
  if (rule.after_effect) text += " after the effect";
  if (!rule.fails) return text;
  if (rule.times == UINT64_MAX) return text + ", and every later one";
  return rule.times == 1 ? text + ", once" : text + ", " + std::to_string(rule.times) + " times";
}

decision fault_plan::decide(verb call, std::uint64_t index, const void* object,
                            const call_address& address) {
  decision decided;
  for (fault_rule& rule : rules_) {
    if (rule.call != call && rule.call != verb::none) continue;
    if (rule.object && rule.object != object) continue;
    if (rule.thread != std::thread::id{} && rule.thread != std::this_thread::get_id()) continue;
    if (rule.index != 0 && index < rule.index) continue;
    // Of one thread up to the first failure; a persistent one is then every thread's.
    if (rule.address.number != 0 && rule.fired == 0 &&
        (address.number != rule.address.number || address.thread != rule.address.thread))
      continue;
    ++rule.seen;
    const bool due = rule.seen >= rule.nth && rule.seen - rule.nth < rule.times;
    if (!due || (rule.index != 0 && rule.times == 1 && index != rule.index)) continue;
    // Whether the list contains the request is known only later: call::refuses_request.
    if (rule.request == 0) ++rule.fired;
    if (rule.fails && !decided.fails) {
      decided.fails = true;
      decided.after_effect = rule.after_effect;
      decided.code = rule.negated ? -rule.code : rule.code;
      decided.request = rule.request;
      decided.rule = static_cast<std::size_t>(&rule - rules_.data());
    }
    if (!decided.action) decided.action = rule.action;
  }
  return decided;
}

}  // namespace ibvxx::shim
