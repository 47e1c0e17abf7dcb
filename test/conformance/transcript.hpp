// The transcript: one line per probe, and the words for its outcomes.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <string>
#include <utility>

namespace conformance {

/// Names the group that the following probes belong to.
void begin_group(std::string name);
/// Writes "group/name: outcome" and flushes, so that whatever hangs later leaves a trace.
void probe(const std::string& name, const std::string& outcome);
/// The last probe that was written, for the watchdog. Safe in a signal handler.
[[nodiscard]] const char* last_probe() noexcept;

/// "EINVAL"; "0" for 0; a number without a name in digits.
[[nodiscard]] std::string errno_name(int code);
/// What a verb returned that returns its error: "0", "EINVAL", "-EINVAL".
[[nodiscard]] std::string code_name(int returned);
[[nodiscard]] std::string hex(unsigned long long value);
[[nodiscard]] std::string name(ibv_qp_state state);
[[nodiscard]] std::string name(ibv_wc_status status);
[[nodiscard]] std::string name(ibv_event_type event);
[[nodiscard]] std::string name(ibv_qp_type type);
[[nodiscard]] std::string wc_opcode_name(unsigned opcode);

/// An errno that no verb sets: where it is still there afterwards, errno was not touched.
inline constexpr int untouched = ENOANO;
[[nodiscard]] std::string errno_state(int code);

/// Probes a verb that returns a pointer, and hands the pointer on.
template <class Call>
auto probe_pointer(const std::string& name, Call&& call) {
  errno = untouched;
  auto* made = std::forward<Call>(call)();
  const int code = errno;
  probe(name, made ? "made" : "NULL, errno " + errno_state(code));
  return made;
}

/// Probes a verb that returns its error, and says what became of errno where it failed.
template <class Call>
int probe_code(const std::string& name, Call&& call) {
  errno = untouched;
  const int returned = std::forward<Call>(call)();
  const int code = errno;
  probe(name, returned == 0 ? "0" : code_name(returned) + ", errno " + errno_state(code));
  return returned;
}

/// Probes a verb that returns -1 and sets errno.
template <class Call>
int probe_minus_one(const std::string& name, Call&& call) {
  errno = untouched;
  const int returned = std::forward<Call>(call)();
  const int code = errno;
  probe(name,
        std::to_string(returned) + (returned < 0 ? ", errno " + errno_state(code) : std::string()));
  return returned;
}

}  // namespace conformance
