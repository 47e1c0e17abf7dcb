// A session: the time during which the shim records and checks what the process does with its
// devices.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ibvxx/shim/completion_fault.hpp>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/shim/fault.hpp>
#include <ibvxx/shim/ledger.hpp>
#include <ibvxx/shim/session_options.hpp>
#include <ibvxx/verb.hpp>
#include <string>
#include <vector>

namespace ibvxx::shim {

/// The status of a process that exits with findings that were not collected: a session was in force
/// then, the one of IBVXX_SHIM or one that exit() did not destroy. The findings are written to
/// standard error before.
inline constexpr int exit_status_of_findings = 86;

/// While it exists, every verb is recorded, and the process has the described devices, or, in a
/// forwarding session, the real ones. One at a time in a process; a second one, and every other
/// misuse of the shim itself, throws std::logic_error with the reason. All members may be called
/// from any thread. The child of a fork has no session: its calls go to the real library, verbs on
/// its parent's objects are refused, and the destructor does nothing there.
class session {
 public:
  /// Throws std::invalid_argument for a description that is not valid.
  explicit session(const simulated& machine = {}, const session_options& options = {});
  /// Calls are passed to the real libibverbs, after the rules and the checks of the ledger, and the
  /// objects that they create are in the ledger. What only a simulated device can do (completions,
  /// events, ports, unplug) throws std::logic_error. Objects from before the session are not in the
  /// ledger, and what a direct-verbs library does by itself is not recorded.
  template <std::same_as<forwarding> Forwarding>  // so that {} is a simulated machine
  explicit session(Forwarding, const session_options& options = {})
      : exceptions_(std::uncaught_exceptions()) {
    begin_forwarding(options);
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  /// Like finish(). If there is a finding, it is written to standard error and the process is
  /// aborted, so that a test cannot pass without checking. During stack unwinding it is only
  /// written.
  ~session();

  /// Begins a rule. Throws std::logic_error for a verb that cannot fail or that the shim does not
  /// intercept.
  fault fail(verb call);
  /// The same for an action at a call: `session.at(verb::query_port).nth(2).run(...)`.
  fault at(verb call);
  /// The same at the call with that index, whatever its verb: `session.at_call(17).unplug("sim0")`.
  fault at_call(std::uint64_t index);
  /// Begins a rule about the send queue of a queue pair, or about its receive queue, including the
  /// receives that it consumes from an SRQ:
  /// `session.complete(qp).nth(3).with(IBV_WC_RETRY_EXC_ERR)`.
  completion_fault complete(const ibv_qp* qp);
  completion_fault complete_receive(const ibv_qp* qp);
  /// Holds the completions of the queue back. release_completions() delivers the oldest `count` of
  /// them and returns how many it delivered; without `count` it delivers all, and later completions
  /// are not held any more. If no completion was held, the session reports unfired_rule.
  void hold_completions(ibv_cq* cq);
  std::size_t release_completions(ibv_cq* cq, std::size_t count = SIZE_MAX);
  /// The number of completions held back.
  [[nodiscard]] std::size_t held_completions(const ibv_cq* cq) const;
  /// Removes all rules and expectations, and with them the findings for those that were not
  /// fulfilled. Completions that are held back stay so.
  void clear_rules();

  /// Expects a finding of this kind whose text contains `containing`. The next such finding is not
  /// reported. If none occurs, the session reports unfired_rule.
  void expect(finding_kind kind, std::string containing = {});
  /// Findings of this kind are not recorded from now on.
  void tolerate(finding_kind kind);

  /// The number of calls so far, of one verb or of all. Calls that libibverbs makes within a call
  /// do not count.
  [[nodiscard]] std::uint64_t calls(verb call) const;
  [[nodiscard]] std::uint64_t calls() const;
  /// The latest calls, in order, except those of the data path (posting and polling); as many as
  /// session_options::trace_capacity says. Costs: linear in them.
  [[nodiscard]] std::vector<call_record> trace() const;

  /// The number of objects that are alive.
  [[nodiscard]] std::size_t live() const;
  [[nodiscard]] std::size_t live(object_kind kind) const;

  /// The completion vector that a live queue was created with, which verbs.h does not offer. Throws
  /// std::logic_error for any other pointer.
  [[nodiscard]] int completion_vector(const ibv_cq* cq) const;

  /// The findings so far. Equal ones are one, with its count.
  [[nodiscard]] std::vector<finding> findings() const;
  /// Ends the session: adds the leaks and the rules that never fired, and returns all findings. The
  /// destructor reports nothing afterwards.
  std::vector<finding> finish();

  // External events. All of these throw std::logic_error for a device, port or object that does not
  // exist.

  /// Changes the state of a port, as an unplugged cable or a restarted switch does, and raises
  /// PORT_ERR or PORT_ACTIVE on every open context if the port became inactive or active.
  void set_port_state(const std::string& device, int port, ibv_port_state state);
  /// Changes a slot of a port's GID table, and raises GID_CHANGE.
  void set_gid(const std::string& device, int port, int index, const gid_slot& slot);
  /// Raises a port's event, or one of the device itself, without changing anything.
  void raise(const std::string& device, ibv_event_type type, int port);
  void raise(const std::string& device, ibv_event_type type);
  /// Raises an event of one object. An event of a broken queue breaks it first: QP_FATAL,
  /// QP_REQ_ERR and QP_ACCESS_ERR put the queue pair into state ERR, WQ_FATAL the work queue.
  void raise(const ibv_qp* qp, ibv_event_type type);
  void raise(const ibv_srq* srq, ibv_event_type type);
  void raise(const ibv_cq* cq, ibv_event_type type);
  void raise(const ibv_wq* wq, ibv_event_type type);
  /// Raises an event on the channel of a queue that has no completion.
  void raise_spurious_event(ibv_cq* cq);
  /// Removes a device: raises DEVICE_FATAL, and every later command fails with EIO.
  void unplug(const std::string& device);

 private:
  void begin_forwarding(const session_options& options);

  bool finished_ = false;
  std::uint64_t generation_ = 0;  // of the sessions of the process
  int exceptions_;
};

}  // namespace ibvxx::shim
