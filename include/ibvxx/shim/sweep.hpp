// Failing every call of a program in turn.
#pragma once

#include <cstddef>
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

/// How to sweep.
struct sweep_options {
  int order = 1;              ///< 2: after each single failure, also fail every later call in turn
  simulated machine{};        ///< what the body sees,
  bool forwarding = false;    ///< unless it sees the real devices, as in a session{forwarding{}}
  session_options session{};  ///< how each run's session looks at it
  bool transient = true;      ///< runs in which a call fails once
  bool persistent = true;     ///< runs in which it, and every later call of its verb, fails
  bool posts = false;         ///< also fails the calls that post requests, each a run of its own
  /// Only the run that a failure's `replay` tells of; the default is what IBVXX_REPLAY holds in the
  /// environment, and without that, all runs.
  std::string replay{};
};

/// A run that was not clean.
struct sweep_failure {
  std::string injected;  ///< "ibv_create_cq (call 17) -> ENOMEM, once"
  std::string what;      ///< what was wrong afterwards
  std::string replay;    ///< "ibv_create_cq#17=ENOMEM,once": repeats this run; empty where nothing
                         ///< was injected
};

/// What a sweep saw.
struct sweep_report {
  std::vector<verb> calls;  ///< the calls of the undisturbed run, in order: what was swept
  std::size_t runs = 0;     ///< runs in all, the undisturbed one included
  bool replayed = false;    ///< only the one run that was asked for
  std::vector<sweep_failure> failures;

  /// Every run was clean: the body told of the injected error, nothing was left alive but what an
  /// injected failure kept, and nothing was found.
  [[nodiscard]] bool clean() const noexcept { return failures.empty() && (runs > 1 || replayed); }
  /// How often each verb was swept, then each failure, in lines.
  [[nodiscard]] std::string text() const;
  /// The same for programs, one JSON object a line: {"type":"summary",...}, then
  /// {"type":"verb",...} for each verb, then {"type":"failure",...} for each failure.
  [[nodiscard]] std::string json_lines() const;
};

namespace detail {

/// What a body said when it was done.
struct body_outcome {
  bool failed = false;
  std::optional<error> told{};  ///< where it said which call failed, and how
  int code = 0;                 ///< where it said the errno only
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

/// Runs `body` without faults, then once per call that it made with that call failing, with each
/// errno that the call can really give, once and persistently. Each run has a session of its own.
/// Of the data path, the calls that post requests are swept where `posts` says so; those that poll
/// are not: nobody knows how often they are made.
///
/// The body must not keep anything. It says what became of it as it likes: by a result (anything
/// with has_value() and error()), which must name the call that failed; by an int, 0 or an errno of
/// either sign, or -1; by a bool; by nothing. Or it throws: ibvxx::exception, another
/// std::system_error, of which the errno counts, or std::bad_alloc for a failed allocation. What it
/// does not say is not checked.
///
/// Throws std::logic_error for options that make no sense, and where a session could not be made.
template <class Body>
[[nodiscard]] sweep_report sweep(Body&& body, const sweep_options& options = {}) {
  return detail::sweep_body([&body] { return detail::run_body(body); }, options);
}

}  // namespace ibvxx::shim
