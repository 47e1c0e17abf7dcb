// A session: the time during which the shim looks at what the process does with its devices.
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

/// While it lives, every verb is written down, and the process sees the devices that it describes,
/// or, where it forwards, the real ones. One at a time in a process; a second one, and every other
/// misuse of the shim itself, throws std::logic_error with the reason. All members may be called
/// from any thread.
class session {
 public:
  /// Throws std::invalid_argument for a description that makes no sense.
  explicit session(const simulated& machine = {}, const session_options& options = {});
  /// Calls go on to the real libibverbs, after the rules have had their say, and what they make is
  /// in the ledger. What only a simulated device can do (completions, events, ports, unplug) throws
  /// std::logic_error. What was made before the session is not in the ledger, and what a
  /// direct-verbs library does by itself is not seen.
  template <std::same_as<forwarding> Forwarding>  // so that {} is a simulated machine
  explicit session(Forwarding, const session_options& options = {})
      : exceptions_(std::uncaught_exceptions()) {
    begin_forwarding(options);
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  /// As finish(); then, if anything was found, writes it to standard error and aborts, so that a
  /// test cannot pass by not looking. While an exception is on its way it only writes.
  ~session();

  /// Begins a rule. Throws std::logic_error for a verb that cannot fail or that the shim does not
  /// see.
  fault fail(verb call);
  /// The same for something that happens at a call: `session.at(verb::query_port).nth(2).run(...)`.
  fault at(verb call);
  /// And at the call of that index, whatever verb it is: `session.at_call(17).unplug("sim0")`.
  fault at_call(std::uint64_t index);
  /// Begins a rule about the send queue of a queue pair, and about its receive queue or the SRQ's
  /// receives that it takes: `session.complete(qp).nth(3).with(IBV_WC_RETRY_EXC_ERR)`.
  completion_fault complete(const ibv_qp* qp);
  completion_fault complete_receive(const ibv_qp* qp);
  /// From now on completions do not get into the queue; release_completions() delivers the oldest
  /// of those kept back, `count` of them, or all and those to come. Returns how many it delivered.
  /// A queue that nothing was kept back from is a finding, as a rule is that never fired.
  void hold_completions(ibv_cq* cq);
  std::size_t release_completions(ibv_cq* cq, std::size_t count = SIZE_MAX);
  /// How many are kept back.
  [[nodiscard]] std::size_t held_completions(const ibv_cq* cq) const;
  /// Takes back all rules and expectations, and with them the finding for those that have not come
  /// true. Completions that are kept back stay so.
  void clear_rules();

  /// The next finding of this kind (whose text contains `containing`) is what the test is after: it
  /// is not among the findings. One that does not come is a finding, as a rule is that never fired.
  void expect(finding_kind kind, std::string containing = {});
  /// Findings of this kind are not written down from now on.
  void tolerate(finding_kind kind);

  /// Calls made so far, of one verb or of all. Calls that libibverbs makes within a call do not
  /// count.
  [[nodiscard]] std::uint64_t calls(verb call) const;
  [[nodiscard]] std::uint64_t calls() const;
  /// Every call so far, in order, but for those of the data path (posting and polling).
  [[nodiscard]] std::vector<call_record> trace() const;

  /// Objects that are alive.
  [[nodiscard]] std::size_t live() const;
  [[nodiscard]] std::size_t live(object_kind kind) const;

  /// The completion vector that a living queue was made with, which nothing in verbs.h tells.
  /// Throws std::logic_error for anything else.
  [[nodiscard]] int completion_vector(const ibv_cq* cq) const;

  /// What was found so far.
  [[nodiscard]] std::vector<finding> findings() const;
  /// Ends the session: adds what leaked and which rules never fired, and returns all findings. The
  /// destructor has nothing to complain about afterwards.
  std::vector<finding> finish();

  // What the world does to devices. All of these throw std::logic_error for what does not exist.

  /// An unplugged cable, a switch coming up: changes the port's state, and raises PORT_ERR or
  /// PORT_ACTIVE on every open context where that made the difference.
  void set_port_state(const std::string& device, int port, ibv_port_state state);
  /// Changes a slot of a port's GID table, and raises GID_CHANGE.
  void set_gid(const std::string& device, int port, int index, const gid_slot& slot);
  /// Raises a port's event, or one of the device itself, without changing anything.
  void raise(const std::string& device, ibv_event_type type, int port);
  void raise(const std::string& device, ibv_event_type type);
  /// Raises an event of one object. Those that tell of a broken queue break it first: QP_FATAL,
  /// QP_REQ_ERR and QP_ACCESS_ERR put the queue pair into state ERR, WQ_FATAL the work queue.
  void raise(const ibv_qp* qp, ibv_event_type type);
  void raise(const ibv_srq* srq, ibv_event_type type);
  void raise(const ibv_cq* cq, ibv_event_type type);
  void raise(const ibv_wq* wq, ibv_event_type type);
  /// Raises an event on the channel of a queue that has no completion.
  void raise_spurious_event(ibv_cq* cq);
  /// Takes a device away: DEVICE_FATAL, and every later command fails with EIO.
  void unplug(const std::string& device);

 private:
  static void begin_forwarding(const session_options& options);

  bool finished_ = false;
  int exceptions_;
};

}  // namespace ibvxx::shim
