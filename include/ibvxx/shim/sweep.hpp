// Failing every call of a program in turn.
#pragma once

#include <cstddef>
#include <functional>
#include <ibvxx/error.hpp>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/verb.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace ibvxx::shim {

/// How to sweep.
struct sweep_options {
  int order = 1;           ///< 2: after each single failure, also fail every later call in turn
  simulated machine{};     ///< what the body sees
  bool transient = true;   ///< runs in which a call fails once
  bool persistent = true;  ///< runs in which it, and every later call of its verb, fails
  std::vector<verb> optional_calls{};  ///< verbs whose failure the body may swallow
};

/// A run that was not clean.
struct sweep_failure {
  std::string injected;  ///< "ibv_create_cq (call 17) -> ENOMEM, once"
  std::string what;      ///< what was wrong afterwards
};

/// What a sweep saw.
struct sweep_report {
  std::vector<verb> calls;  ///< the calls of the undisturbed run, in order: what was swept
  std::size_t runs = 0;     ///< runs in all, the undisturbed one included
  std::vector<sweep_failure> failures;

  /// Every run was clean: the body told of the injected error, nothing was left alive but what an
  /// injected failure kept, and nothing was found.
  [[nodiscard]] bool clean() const noexcept { return failures.empty() && runs > 1; }
  /// How often each verb was swept, then each failure, in lines.
  [[nodiscard]] std::string text() const;
};

namespace detail {

[[nodiscard]] sweep_report sweep_body(const std::function<std::optional<error>()>& body,
                                      const sweep_options& options);

}  // namespace detail

/// Runs `body` without faults, then once per call that it made with that call failing, with each
/// errno that the call can really give, once and persistently. Each run has a session of its own.
/// The body returns a result (anything with has_value() and error()) and must not keep anything. A
/// std::bad_alloc that leaves it counts as the error of a failed allocation. Throws
/// std::logic_error where a session could not be made.
template <class Body>
[[nodiscard]] sweep_report sweep(Body&& body, const sweep_options& options = {}) {
  return detail::sweep_body(
      [&body]() -> std::optional<error> {
        auto outcome = body();
        if (outcome.has_value()) return std::nullopt;
        return outcome.error();
      },
      options);
}

}  // namespace ibvxx::shim
