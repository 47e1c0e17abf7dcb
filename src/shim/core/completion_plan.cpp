#include "core/completion_plan.hpp"

#include <ibvxx/completion_status.hpp>

namespace ibvxx::shim {

std::string describe(const completion_rule& rule) {
  std::string text = (rule.receives ? "receive on " : "send on ") + rule.title +
                     ", matching request " + std::to_string(rule.nth) + " -> ";
  text += rule.lost ? "its completion is lost" : wc_status_name(rule.status);
  if (rule.after_effect) text += " after the effect";
  return rule.times == 1 ? text + ", once" : text + ", " + std::to_string(rule.times) + " times";
}

void completion_plan::clear_rules() noexcept {
  for (completion_rule& rule : rules_) rule.cleared = true;
  for (completion_hold& hold : holds_) hold.cleared = true;
}

std::uint32_t completion_plan::decide(const void* qp, bool receives,
                                      ibv_wr_opcode opcode) noexcept {
  std::uint32_t decided = 0;
  std::uint32_t number = 0;
  for (completion_rule& rule : rules_) {
    ++number;
    if (rule.cleared || rule.qp != qp || rule.receives != receives) continue;
    if (!rule.any_opcode && rule.opcode != opcode) continue;
    ++rule.seen;
    if (decided == 0 && rule.seen >= rule.nth && rule.seen - rule.nth < rule.times)
      decided = number;
  }
  return decided;
}

}  // namespace ibvxx::shim
