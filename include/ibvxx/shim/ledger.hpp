// What the shim writes down: objects, calls, and what a program did wrong.
#pragma once

#include <cstdint>
#include <ibvxx/verb.hpp>
#include <string>

namespace ibvxx::shim {

/// The kinds of object that the ledger follows.
enum class object_kind : std::uint8_t {
  device_list,
  context,
  pd,  ///< parent domains and imported ones too
  mr,
  comp_channel,
  cq,  ///< extended ones too
  td,
  xrcd,
  mw,
  dm,
  qp,  ///< extended and opened ones too
  srq,
  ah,
  wq,
  rwq_ind_table,
  flow,
  flow_action,
  counters,
  multicast_membership,
  descriptor,  ///< a file descriptor that the program made and must close
};
inline constexpr std::size_t object_kind_count = 20;
static_assert(object_kind_count == static_cast<std::size_t>(object_kind::descriptor) + 1);

/// "device list", "CQ", ...
[[nodiscard]] const char* name(object_kind kind) noexcept;

/// What a program can do wrong.
enum class finding_kind : std::uint8_t {
  leak,               ///< an object was not destroyed before the session ended
  descriptor_leak,    ///< a descriptor was not closed before the session ended
  double_destroy,     ///< a destroyed object was destroyed again
  use_after_destroy,  ///< a destroyed object was used
  destroyed_in_use,   ///< a device was closed, or a destroy tried, while others still needed the
                      ///< object
  foreign_pointer,    ///< a pointer that no verb returned
  wrong_kind,         ///< an object given where one of another kind belongs
  double_close,  ///< a descriptor was closed that was not open, or that belongs to a verbs object
  unacknowledged_events,     ///< a destroy would have waited for ever for events that were read
  over_acknowledged_events,  ///< more events were acknowledged than read
  unbalanced_batch,  ///< an iteration over a CQ, or a batch of requests, begun twice or ended
                     ///< without having been begun
  unfired_rule,      ///< a fault or a finding that was asked for never happened
  wrong_thread,  ///< two threads were where only one at a time may be, or one ended what another
                 ///< had begun
  wrong_state,   ///< a request posted to a queue pair that refuses it or never completes it; strict
                 ///< sessions only
  wrong_memory,  ///< a request names memory by a key that is none, or not with that range, access
                 ///< or domain; strict sessions only
  undersized_cq,  ///< a completion was lost because its CQ was full
  memory_in_use,  ///< memory was deregistered, freed or unmapped while work requests named it
  buffer_reused,  ///< receives were posted that overlap; strict sessions only
};
inline constexpr std::size_t finding_kind_count = 18;
static_assert(finding_kind_count == static_cast<std::size_t>(finding_kind::buffer_reused) + 1);

/// "leak", "double destroy", ...
[[nodiscard]] const char* name(finding_kind kind) noexcept;
/// What to do about it, in one line.
[[nodiscard]] const char* advice(finding_kind kind) noexcept;

/// One thing found, with everything that helps to mend it in `text`: what, on which object, where
/// that was made and destroyed, and what to do.
struct finding {
  finding_kind kind;
  std::string text;
};

/// One call that the program made.
struct call_record {
  std::uint64_t index;  ///< counts from 1, over all verbs of the session
  verb call;
  const void* object;   ///< what it was called on; null for those without
  std::string subject;  ///< the same for humans: "cq#2 of sim0"
  int injected;         ///< the errno that a rule made of it, or 0; -1: a failure without one
};

}  // namespace ibvxx::shim
