#include <ibvxx/shim/sweep.hpp>

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <ibvxx/or_throw.hpp>
#include <ibvxx/teardown.hpp>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <typeinfo>
#include <utility>

#include "core/engine.hpp"
#include "core/verb_table.hpp"
#include "device/machine.hpp"
#include "session/leftovers.hpp"
#include "session/sweep_replay.hpp"

namespace ibvxx::shim::detail {
namespace {

/// Teardown errors of the current run, of all its threads. Global, since the handler is a plain
/// function; never destroyed, since a thread may outlive the program's static objects.
struct teardown_errors {
  std::mutex lock;
  std::vector<error> errors;
};
teardown_errors& handed_over() {
  static auto* kept = new teardown_errors;
  return *kept;
}

void keep_teardown_error(const error& e) noexcept {
  const engine::suppress_interception quiet;
  teardown_errors& kept = handed_over();
  const std::lock_guard guard(kept.lock);
  kept.errors.push_back(e);
}

/// While it exists, teardown errors are kept. The handler before it is put back in every case.
class teardown_scope {
 public:
  teardown_scope() : before_(nullptr) {
    teardown_errors& kept = handed_over();
    const std::lock_guard guard(kept.lock);
    kept.errors.clear();
    before_ = set_teardown_handler(&keep_teardown_error);
  }
  teardown_scope(const teardown_scope&) = delete;
  teardown_scope& operator=(const teardown_scope&) = delete;
  ~teardown_scope() { set_teardown_handler(before_); }

  [[nodiscard]] static std::vector<error> errors() {
    teardown_errors& kept = handed_over();
    const std::lock_guard guard(kept.lock);
    return kept.errors;
  }

 private:
  teardown_handler before_;
};

/// While it exists, its session is in force.
class session_scope {
 public:
  explicit session_scope(std::unique_ptr<session_state> state) { engine::begin(std::move(state)); }
  session_scope(const session_scope&) = delete;
  session_scope& operator=(const session_scope&) = delete;
  ~session_scope() { engine::end(); }
};

/// "std::runtime_error", of the exception that is being handled.
[[nodiscard]] std::string thrown_type() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (!type) return "an exception of another language";
  int status = 0;
  char* const readable = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string name = status == 0 && readable ? readable : type->name();
  std::free(readable);
  return name;
}

[[nodiscard]] body_outcome thrown_outcome(std::string thrown) {
  body_outcome outcome;
  outcome.failed = true;
  outcome.thrown = std::move(thrown);
  return outcome;
}

/// The outcome of the body, whatever it throws. Only a thread's cancellation passes.
[[nodiscard]] body_outcome outcome_of(const std::function<body_outcome()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return {true, error(verb::allocate, ENOMEM)};
  } catch (const exception& thrown) {
    return {true, thrown.cause()};
  } catch (const std::system_error& thrown) {
    return {true, std::nullopt, thrown.code().value()};
  } catch (const std::exception& thrown) {
    const engine::suppress_interception quiet;
    return thrown_outcome(thrown_type() + ": " + thrown.what());
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    const engine::suppress_interception quiet;
    return thrown_outcome(thrown_type());
  }
}

/// The outcome of one run.
struct run {
  body_outcome outcome;
  std::vector<error> teardown;
  std::vector<call_address> calls;
  std::vector<fault_rule> rules;  // with how often each fired
  std::vector<finding> findings;
  std::vector<std::string> left;  // alive, and no injected failure accounts for it
};

[[nodiscard]] run run_once(const std::function<body_outcome()>& body, const sweep_options& options,
                           const std::vector<fault_rule>& rules) {
  run one;
  auto fresh = std::make_unique<session_state>();
  if (!options.forwarding) fresh->simulated = std::make_unique<machine>(options.machine);
  fresh->apply(options.session);
  fresh->swept = std::make_unique<swept_calls>();
  fresh->traces_posts = options.posts;
  for (const fault_rule& rule : rules) fresh->plan.add(rule);
  const teardown_scope teardown;
  const session_scope session(std::move(fresh));
  one.outcome = outcome_of(body);
  {
    const engine::suppress_interception quiet;
    const auto seen = engine::lock_session();
    one.calls = seen.state.swept->all();
    one.rules = seen.state.plan.rules();
    one.findings = seen.state.findings.all();
    for (const record* object : seen.state.objects.unexcused())
      one.left.push_back(object->title + ", " + origin(*object));
  }
  if (options.forwarding) destroy_leftovers();
  const engine::suppress_interception quiet;
  one.teardown = teardown_scope::errors();
  return one;
}

[[nodiscard]] bool is_of(const error& e, const fault_rule& rule) noexcept {
  return e.call() == rule.call && e.code() == rule.code;
}
/// Whether the body reported the rule's failure; a body without an error object is compared by its
/// code.
[[nodiscard]] bool is_of(const body_outcome& outcome, const fault_rule& rule) noexcept {
  if (outcome.told) return is_of(*outcome.told, rule);
  return outcome.failed && (outcome.code == 0 || outcome.code == rule.code);
}

[[nodiscard]] std::string describe(const body_outcome& outcome) {
  if (!outcome.thrown.empty()) return "it threw " + outcome.thrown;
  if (outcome.told) return outcome.told->message();
  const char* known = errno_name(outcome.code);
  return known ? known : "errno " + std::to_string(outcome.code);
}

[[nodiscard]] bool contains(const std::vector<verb>& list, verb call) noexcept {
  return std::find(list.begin(), list.end(), call) != list.end();
}

/// Throws std::logic_error for lists of verbs that leave nothing, or contradict each other.
void check_lists(const sweep_options& options) {
  for (const verb call : options.only) {
    const verb_row& row = row_of(call);
    const std::string named = std::string("shim: sweep_options.only names ") + name(call);
    if (contains(options.except, call)) throw std::logic_error(named + ", and so does except");
    if (row.errnos.empty() || !row.intercepted())
      throw std::logic_error(named + ", which a sweep does not fail");
    if (!row.traced && !options.posts)
      throw std::logic_error(named + ", which posts: that needs sweep_options.posts");
  }
  for (std::size_t v = 0; v < verb_count; ++v) {
    const auto call = static_cast<verb>(v);
    const verb_row& row = row_of(call);
    if (!row.errnos.empty() && row.intercepted() && !contains(options.except, call)) return;
  }
  throw std::logic_error("shim: sweep_options.except leaves no verb that a sweep fails");
}

class sweeper {
 public:
  sweeper(const std::function<body_outcome()>& body, const sweep_options& options)
      : body_(body), options_(options) {}

  [[nodiscard]] sweep_report sweep() {
    const run undisturbed = execute({});
    keep_calls(undisturbed);
    if (undisturbed.outcome.failed)
      complain({},
               undisturbed.outcome.thrown.empty() ? sweep_failure_kind::body_failed
                                                  : sweep_failure_kind::foreign_exception,
               "the undisturbed run failed: " + describe(undisturbed.outcome));
    if (!report_.failures.empty()) {
      report_.stopped = "the undisturbed run is not clean";
      return std::move(report_);
    }
    if (std::none_of(undisturbed.calls.begin(), undisturbed.calls.end(),
                     [this](const call_address& one) { return is_swept(one.call); })) {
      report_.stopped = "the body makes no call that the sweep could fail";
      return std::move(report_);
    }
    for (const call_address& call : undisturbed.calls) {
      if (!is_swept(call.call)) continue;
      for (const int code : row_of(call.call).errnos) {
        if (options_.transient) first_fault(make_rule(call, code, 1));
        if (options_.persistent) first_fault(make_rule(call, code, UINT64_MAX));
      }
    }
    return std::move(report_);
  }

  [[nodiscard]] sweep_report replay(const std::vector<fault_rule>& rules) {
    report_.replayed = true;
    keep_calls(execute(rules));
    return std::move(report_);
  }

 private:
  void keep_calls(const run& one) {
    for (const call_address& call : one.calls)
      report_.calls.push_back({call.call, call.number, call.thread});
  }

  [[nodiscard]] bool is_swept(verb call) const {
    return !row_of(call).errnos.empty() && !contains(options_.except, call) &&
           (options_.only.empty() || contains(options_.only, call));
  }

  [[nodiscard]] static fault_rule make_rule(const call_address& call, int code,
                                            std::uint64_t times) {
    fault_rule rule;
    rule.call = call.call;
    rule.address = call;
    rule.code = code;
    rule.fails = true;
    rule.times = times;
    return rule;
  }

  void first_fault(const fault_rule& first) {
    const run one = execute({first});
    if (options_.order < 2 || first.times != 1 || first.code != row_of(first.call).errnos.front())
      return;
    bool later = false;
    for (const call_address& call : one.calls) {
      if (later && is_swept(call.call))
        execute({first, make_rule(call, row_of(call.call).errnos.front(), 1)});
      later = later || (call.call == first.call && call.number == first.address.number &&
                        call.thread == first.address.thread);
    }
  }

  run execute(const std::vector<fault_rule>& rules) {
    run one = run_once(body_, options_, rules);
    ++report_.runs;
    for (const finding& found : one.findings)
      complain(rules, sweep_failure_kind::misuse,
               std::string(name(found.kind)) + ": " + found.text);
    for (const std::string& object : one.left)
      complain(rules, sweep_failure_kind::left_alive, "left alive: " + object);
    bool all_fired = true;
    for (const fault_rule& rule : one.rules) {
      if (rule.fired != 0) continue;
      all_fired = false;
      complain(rules, sweep_failure_kind::never_fired,
               describe(rule) + " never fired: the body does not repeat its calls");
    }
    if (rules.empty()) return one;
    if (!one.outcome.thrown.empty())
      complain(rules, sweep_failure_kind::foreign_exception,
               "the body failed without a verb: " + describe(one.outcome));
    else if (all_fired)  // otherwise there was no failure to report
      check_told(rules, one);
    return one;
  }

  /// The body must report the first failure; for a destroy, the teardown handler may report it
  /// instead. A second failure may stay unreported, unless it is a destroy's and the body succeeds.
  void check_told(const std::vector<fault_rule>& rules, const run& one) {
    for (const fault_rule& rule : rules) {
      const bool destroy = row_of(rule.call).ends_something();
      const auto same = [&rule](const error& e) { return is_of(e, rule); };
      const bool by_body = is_of(one.outcome, rule);
      const bool by_handler = std::any_of(one.teardown.begin(), one.teardown.end(), same);
      const bool second = &rule != &rules.front();
      if (by_body || (destroy && by_handler)) continue;
      if (contains(options_.optional_calls, rule.call)) continue;
      if (second && (!destroy || one.outcome.failed))
        continue;  // a body reports one error, and this one reported the first
      complain(
          rules,
          one.outcome.failed ? sweep_failure_kind::other_error : sweep_failure_kind::not_reported,
          one.outcome.failed ? "the body reported another error: " + describe(one.outcome)
                             : std::string("the error was not reported: the body succeeded"));
      return;
    }
  }

  void complain(const std::vector<fault_rule>& rules, sweep_failure_kind kind, std::string what) {
    std::string injected;
    for (const fault_rule& rule : rules)
      injected += (injected.empty() ? "" : "; then ") + describe(rule);
    report_.failures.push_back(
        {injected.empty() ? "nothing" : injected, std::move(what), to_replay(rules), kind});
  }

  const std::function<body_outcome()>& body_;
  const sweep_options& options_;
  sweep_report report_;
};

}  // namespace

sweep_report sweep_body(const std::function<body_outcome()>& body, const sweep_options& options) {
  if (options.order != 1 && options.order != 2)
    throw std::logic_error("shim: sweep order " + std::to_string(options.order) +
                           " is neither 1 nor 2");
  check_lists(options);
  const char* const asked = std::getenv("IBVXX_REPLAY");
  const std::string replay = options.replay.empty() && asked ? asked : options.replay;
  if (!replay.empty()) return sweeper(body, options).replay(from_replay(replay));
  return sweeper(body, options).sweep();
}

}  // namespace ibvxx::shim::detail
