// The records of the shim: objects, calls, and misuse by the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ibvxx/verb.hpp>
#include <string>

namespace ibvxx::shim {

/// The kinds of object in the ledger.
enum class object_kind : std::uint8_t {
  device_list,
  context,
  pd,  ///< also parent domains and imported ones
  mr,
  comp_channel,
  cq,  ///< also extended ones
  td,
  xrcd,
  mw,
  dm,
  qp,  ///< also extended and opened ones
  srq,
  ah,
  wq,
  rwq_ind_table,
  flow,
  flow_action,
  counters,
  multicast_membership,
  descriptor,  ///< a file descriptor that the program opened and must close
};
inline constexpr std::size_t object_kind_count = 20;
static_assert(object_kind_count == static_cast<std::size_t>(object_kind::descriptor) + 1);

/// "device list", "CQ", ...
[[nodiscard]] const char* name(object_kind kind) noexcept;

/// The kinds of misuse by a program.
enum class finding_kind : std::uint8_t {
  leak,               ///< an object was not destroyed before the session ended
  descriptor_leak,    ///< a descriptor was not closed before the session ended
  double_destroy,     ///< a destroyed object was destroyed again
  use_after_destroy,  ///< a destroyed object was used
  destroyed_in_use,   ///< a device was closed, or a destroy was called, while other objects still
                      ///< used the object
  foreign_pointer,    ///< a pointer that no verb returned was used
  wrong_kind,         ///< an object of one kind was passed for one of another
  double_close,  ///< a descriptor was closed that was not open, or that belongs to a verbs object
  unacknowledged_events,     ///< a destroy would have waited for ever for unacknowledged events
  over_acknowledged_events,  ///< more events were acknowledged than read
  unbalanced_batch,  ///< an iteration over a CQ, or a batch of requests, was begun twice, or
                     ///< ended without being begun
  unfired_rule,      ///< a rule never applied, or an expected finding never occurred
  wrong_thread,      ///< two threads used what one at a time may use, or one ended what another
                     ///< had begun
  wrong_state,       ///< a request was posted to a queue pair that refuses or never completes it;
                     ///< strict sessions only
  wrong_memory,  ///< a request used an unknown key, or one that does not cover its range, access or
                 ///< domain; strict sessions only
  undersized_cq,  ///< a completion was lost because its CQ was full
  memory_in_use,  ///< memory was deregistered, freed or unmapped while work requests used it
  buffer_reused,  ///< receives with overlapping buffers were posted; strict sessions only
};
inline constexpr std::size_t finding_kind_count = 18;
static_assert(finding_kind_count == static_cast<std::size_t>(finding_kind::buffer_reused) + 1);

/// "leak", "double destroy", ...
[[nodiscard]] const char* name(finding_kind kind) noexcept;
/// How to correct it, in one line.
[[nodiscard]] const char* advice(finding_kind kind) noexcept;

/// One finding. `text` has what is needed to correct it: the misuse, the object, where that was
/// created and destroyed, and what to do. The same misuse again is counted, not reported again: the
/// kind, the object and the text are equal, except for numbers of calls and requests. The text is
/// that of the first time, and says how often it happened.
struct finding {
  finding_kind kind;
  std::string text;
  std::size_t count = 1;  ///< how often it happened
};
/// The different findings of one kind that a session lists. One more then says how many more there
/// were.
inline constexpr std::size_t most_findings_of_a_kind = 1000;

/// One call that the program made.
struct call_record {
  std::uint64_t index;  ///< counts from 1, over all verbs of the session
  verb call;
  const void* object;   ///< the object of the call; null if it has none
  std::string subject;  ///< the same for people: "cq#2 of sim0"
  int injected;         ///< the errno that a rule injected, or 0; -1: a failure without errno
};

}  // namespace ibvxx::shim
