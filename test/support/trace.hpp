// Reading a session's trace: what was made, what was destroyed, and in which order.
#pragma once

#include <array>
#include <ibvxx/shim.hpp>
#include <map>
#include <string>
#include <vector>

namespace ibvxx::test {

/// What a verb makes, by the first word of the titles that the ledger gives; null for a verb that
/// makes nothing.
inline const char* made_by(verb call) {
  switch (call) {
    case verb::get_device_list:
      return "device list";
    case verb::open_device:
      return "context";
    case verb::alloc_pd:
      return "PD";
    case verb::epoll_create1:
      return "descriptor";
    case verb::create_comp_channel:
      return "completion channel";
    case verb::create_cq:
      return "CQ";
    case verb::reg_mr:
      return "MR";
    default:
      return nullptr;
  }
}

inline bool destroys(verb call) {
  switch (call) {
    case verb::free_device_list:
    case verb::close_device:
    case verb::dealloc_pd:
    case verb::close:
    case verb::destroy_comp_channel:
    case verb::destroy_cq:
    case verb::dereg_mr:
      return true;
    default:
      return false;
  }
}

/// "CQ#3" of "CQ#3 of sim0"; "descriptor" of "descriptor 7".
inline std::string short_title(const std::string& title) {
  if (title.rfind("descriptor", 0) == 0) return "descriptor";
  return title.substr(0, title.find(" of "));
}

/// The objects made by the calls of `trace` that were not failed, in order. The device list, which
/// no context keeps, is left out of both lists.
inline std::vector<std::string> created(const std::vector<shim::call_record>& trace) {
  std::vector<std::string> titles;
  std::map<std::string, int> counts;
  for (const auto& one : trace) {
    const char* kind = made_by(one.call);
    if (!kind || one.injected != 0 || one.call == verb::get_device_list) continue;
    const std::string title = kind;
    titles.push_back(title == "descriptor" ? title : title + "#" + std::to_string(++counts[title]));
  }
  return titles;
}

/// The objects whose destroy succeeded, in order.
inline std::vector<std::string> destroyed(const std::vector<shim::call_record>& trace) {
  std::vector<std::string> titles;
  for (const auto& one : trace)
    if (destroys(one.call) && one.call != verb::free_device_list &&
        (one.injected == 0 || one.call == verb::close))
      titles.push_back(short_title(one.subject));
  return titles;
}

/// "ibv_create_cq (call 17)".
inline std::string describe(const shim::call_record& one) {
  return std::string(name(one.call)) + " (call " + std::to_string(one.index) + ")";
}

/// The findings as lines, for messages.
inline std::string lines(const std::vector<shim::finding>& findings) {
  std::string text;
  for (const auto& one : findings) text += std::string(name(one.kind)) + ": " + one.text + "\n";
  return text;
}

/// How often what the findings of a kind say has happened.
inline std::size_t count(const std::vector<shim::finding>& findings, shim::finding_kind kind) {
  std::size_t n = 0;
  for (const auto& one : findings) n += one.kind == kind ? one.count : 0;
  return n;
}

}  // namespace ibvxx::test
