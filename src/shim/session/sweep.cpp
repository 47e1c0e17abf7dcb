#include <ibvxx/shim/sweep.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ibvxx/or_throw.hpp>
#include <ibvxx/teardown.hpp>
#include <memory>
#include <new>
#include <system_error>

#include "core/engine.hpp"
#include "core/verb_table.hpp"
#include "device/machine.hpp"
#include "session/leftovers.hpp"
#include "session/sweep_replay.hpp"

namespace ibvxx::shim::detail {
namespace {

// Teardown errors of the current run. Global, since the handler is a plain function.
std::vector<error>* handed_over = nullptr;

void keep_teardown_error(const error& e) noexcept {
  const engine::suppress_interception quiet;
  handed_over->push_back(e);
}

/// The outcome of one run.
struct run {
  body_outcome outcome;
  std::vector<error> teardown;
  std::vector<traced_call> trace;  // subjects are not valid any more
  std::vector<fault_rule> rules;   // with how often each fired
  std::vector<finding> findings;
  std::vector<std::string> left;  // alive, and no injected failure accounts for it
  bool left_anything = false;
};

[[nodiscard]] run run_once(const std::function<body_outcome()>& body, const sweep_options& options,
                           const std::vector<fault_rule>& rules) {
  run one;
  auto fresh = std::make_unique<session_state>();
  if (!options.forwarding) fresh->simulated = std::make_unique<machine>(options.machine);
  fresh->apply(options.session);
  fresh->traces_posts = options.posts;
  fresh->trace.set_capacity(SIZE_MAX);  // a sweep fails every call
  for (const fault_rule& rule : rules) fresh->plan.add(rule);
  handed_over = &one.teardown;
  const teardown_handler before = set_teardown_handler(&keep_teardown_error);
  engine::begin(std::move(fresh));
  try {
    one.outcome = body();
  } catch (const std::bad_alloc&) {
    one.outcome = {true, error(verb::allocate, ENOMEM)};
  } catch (const exception& thrown) {
    one.outcome = {true, thrown.cause()};
  } catch (const std::system_error& thrown) {
    one.outcome = {true, std::nullopt, thrown.code().value()};
  } catch (...) {
    engine::end();
    set_teardown_handler(before);
    throw;
  }
  {
    const engine::suppress_interception quiet;
    const auto seen = engine::lock_session();
    one.trace.assign(seen.state.trace.begin(), seen.state.trace.end());
    one.rules = seen.state.plan.rules();
    one.findings = seen.state.findings.all();
    for (const record* object : seen.state.objects.unexcused())
      one.left.push_back(object->title + ", " + origin(*object));
    one.left_anything = seen.state.objects.live() != 0;
  }
  if (options.forwarding) destroy_leftovers();
  engine::end();
  set_teardown_handler(before);
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
  if (outcome.told) return outcome.told->message();
  const char* known = errno_name(outcome.code);
  return known ? known : "errno " + std::to_string(outcome.code);
}

class sweeper {
 public:
  sweeper(const std::function<body_outcome()>& body, const sweep_options& options)
      : body_(body), options_(options) {}

  [[nodiscard]] sweep_report sweep() {
    const run undisturbed = execute({});
    for (const traced_call& call : undisturbed.trace) report_.calls.push_back(call.call);
    if (undisturbed.outcome.failed)
      complain({}, "the undisturbed run failed: " + describe(undisturbed.outcome));
    if (!report_.failures.empty()) return std::move(report_);
    for (const traced_call& call : undisturbed.trace) {
      for (const int code : row_of(call.call).errnos) {
        if (options_.transient) first_fault(make_rule(call, code, 1));
        if (options_.persistent) first_fault(make_rule(call, code, UINT64_MAX));
      }
    }
    return std::move(report_);
  }

  [[nodiscard]] sweep_report replay(const std::vector<fault_rule>& rules) {
    report_.replayed = true;
    for (const traced_call& call : execute(rules).trace) report_.calls.push_back(call.call);
    return std::move(report_);
  }

 private:
  [[nodiscard]] static fault_rule make_rule(const traced_call& call, int code,
                                            std::uint64_t times) {
    fault_rule rule;
    rule.call = call.call;
    rule.index = call.index;
    rule.code = code;
    rule.fails = true;
    rule.times = times;
    return rule;
  }

  void first_fault(const fault_rule& first) {
    const run one = execute({first});
    if (options_.order < 2 || first.times != 1 || first.code != row_of(first.call).errnos.front())
      return;
    for (const traced_call& call : one.trace) {
      if (call.index <= first.index || row_of(call.call).errnos.empty()) continue;
      execute({first, make_rule(call, row_of(call.call).errnos.front(), 1)});
    }
  }

  run execute(const std::vector<fault_rule>& rules) {
    run one = run_once(body_, options_, rules);
    ++report_.runs;
    for (const finding& found : one.findings)
      complain(rules, std::string(name(found.kind)) + ": " + found.text);
    for (const std::string& object : one.left) complain(rules, "left alive: " + object);
    for (const fault_rule& rule : one.rules)
      if (rule.fired == 0)
        complain(rules, describe(rule) + " never fired: the body does not repeat its calls");
    if (!rules.empty()) check_told(rules, one);
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
      if (second && (!destroy || one.outcome.failed))
        continue;  // a body reports one error, and this one reported the first
      complain(rules, one.outcome.failed
                          ? "the body reported another error: " + describe(one.outcome)
                          : std::string("the error was not reported: the body succeeded"));
      return;
    }
  }

  void complain(const std::vector<fault_rule>& rules, std::string what) {
    std::string injected;
    for (const fault_rule& rule : rules)
      injected += (injected.empty() ? "" : "; then ") + describe(rule);
    report_.failures.push_back(
        {injected.empty() ? "nothing" : injected, std::move(what), to_replay(rules)});
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
  const char* const asked = std::getenv("IBVXX_REPLAY");
  const std::string replay = options.replay.empty() && asked ? asked : options.replay;
  if (!replay.empty()) return sweeper(body, options).replay(from_replay(replay));
  return sweeper(body, options).sweep();
}

}  // namespace ibvxx::shim::detail
