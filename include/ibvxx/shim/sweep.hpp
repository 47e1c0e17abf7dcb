// Failing every call of a program in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ibvxx/error.hpp>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/shim/session_options.hpp>
#include <ibvxx/verb.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace ibvxx::shim {

/// The options of a sweep.
struct sweep_options {
  int order = 1;              ///< 2: after each single failure, also fail every later call in turn
  simulated machine{};        ///< the devices of the body
  bool forwarding = false;    ///< the real devices instead, as in a session{forwarding{}}
  session_options session{};  ///< the options of each run's session
  bool transient = true;      ///< runs in which a call fails once
  bool persistent = true;     ///< runs in which a call and every later call of its verb fails
  bool posts = false;         ///< also fails the calls that post requests, each in its own run
  /// Only the run of a failure's `replay`. The default is the value of IBVXX_REPLAY in the
  /// environment, and without that all runs.
  std::string replay{};
  /// The verbs whose calls are failed; empty: all. verb::allocate is operator new.
  std::vector<verb> only{};
  /// Verbs whose calls are not failed. May not name a verb that `only` names.
  std::vector<verb> except{};
  /// Verbs whose failure the body need not report: it may succeed, or report another error.
  std::vector<verb> optional_calls{};
};

/// A call of the body. Its address, the n-th of its verb by its thread, is the same in every run in
/// which that thread makes the same calls, whatever other threads do and however often it polls.
struct swept_call {
  verb call = verb::none;
  std::uint64_t number = 0;  ///< of the calls of this verb by this thread, from 1
  unsigned thread = 1;       ///< in the order of the threads' first calls that are swept

  friend bool operator==(const swept_call&, const swept_call&) = default;
  friend bool operator==(const swept_call& one, verb which) noexcept { return one.call == which; }
};

/// What was wrong after a run, the worst first.
enum class sweep_failure_kind : std::uint8_t {
  body_failed,        ///< the body failed though nothing was injected
  foreign_exception,  ///< the body threw an exception that names neither a verb nor an errno
  left_alive,         ///< an object was left alive that no injected failure accounts for
  misuse,             ///< a finding
  not_reported,       ///< the body succeeded despite the injected failure
  other_error,        ///< the body reported another error
  never_fired,        ///< the body did not make the call again: the run has no result
};
/// "body failed", "foreign exception", ... Static storage.
[[nodiscard]] const char* name(sweep_failure_kind kind) noexcept;

/// A run that was not clean.
struct sweep_failure {
  std::string injected;  ///< "ibv_create_cq@2 -> ENOMEM, once"
  std::string what;      ///< what was wrong after the run
  std::string replay;    ///< "ibv_create_cq@2=ENOMEM,once": repeats this run; empty if nothing
                         ///< was injected
  sweep_failure_kind kind = sweep_failure_kind::misuse;
};

/// The result of a sweep.
struct sweep_report {
  std::vector<swept_call> calls;  ///< the calls of the run without faults, in order
  std::size_t runs = 0;           ///< all runs, with the one without faults
  bool replayed = false;          ///< only the requested run was made
  /// Why nothing was injected, for example "the undisturbed run is not clean"; empty otherwise.
  std::string stopped{};
  std::vector<sweep_failure> failures;

  /// Every run was clean: the body reported the injected error, no object was left alive except
  /// those that an injected failure kept, and there was no finding.
  [[nodiscard]] bool clean() const noexcept { return failures.empty() && (runs > 1 || replayed); }
  /// How often each verb was swept, then each failure, in lines.
  [[nodiscard]] std::string text() const;
  /// The same as JSON, one object in a line: {"type":"summary",...}, then {"type":"verb",...} for
  /// each verb, then {"type":"failure",...} for each failure.
  [[nodiscard]] std::string json_lines() const;
};

namespace detail {

/// The outcome of a body.
struct body_outcome {
  bool failed = false;
  std::optional<error> told{};  ///< if it returned which call failed, and how
  int code = 0;                 ///< if it returned the errno only
  std::string thrown{};         ///< an exception of any other type: "std::runtime_error: text"
};

template <class Body>
[[nodiscard]] body_outcome run_body(Body& body) {
  using returned = std::invoke_result_t<Body&>;
  if constexpr (std::is_void_v<returned>) {
    body();
    return {};
  } else if constexpr (std::is_same_v<returned, bool>) {
    return {!body()};
  } else if constexpr (std::is_same_v<returned, int>) {
    const int code = body();
    return {code != 0, std::nullopt, code == -1 ? 0 : code < 0 ? -code : code};
  } else {
    auto outcome = body();
    if (outcome.has_value()) return {};
    return {true, outcome.error()};
  }
}

[[nodiscard]] sweep_report sweep_body(const std::function<body_outcome()>& body,
                                      const sweep_options& options);

}  // namespace detail

/// Runs `body` without faults, then once for each call that it made with that call failing, with
/// each errno that the call can really return, once and persistently. Each run has a session of its
/// own. In the data path, calls that post requests are swept if `posts` is set; calls that poll are
/// not, since their number varies from run to run.
///
/// The body must not keep anything. It reports its outcome in one of these ways: a result (any type
/// with has_value() and error()), which must name the call that failed; an int, 0 or an errno of
/// either sign, or -1; a bool; nothing. Or it throws: ibvxx::exception, another std::system_error,
/// whose errno is checked, or std::bad_alloc for a failed allocation. What it does not report is
/// not checked.
/// Any other exception is a failure of the run (foreign_exception); objects and findings are
/// checked all the same, and the sweep continues.
///
/// Throws std::logic_error for options that are not valid, and while a session is in force;
/// whatever a description of a device that is not valid throws. The teardown handler is then as it
/// was before.
template <class Body>
[[nodiscard]] sweep_report sweep(Body&& body, const sweep_options& options = {}) {
  return detail::sweep_body([&body] { return detail::run_body(body); }, options);
}

}  // namespace ibvxx::shim
