// A session: the time during which the process sees simulated devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/shim/fault.hpp>
#include <ibvxx/shim/ledger.hpp>
#include <ibvxx/verb.hpp>
#include <vector>

namespace ibvxx::shim {

/// While it lives, the process sees its devices and every verb is written down. One at a time in a
/// process; a second one, and every other misuse of the shim itself, throws std::logic_error with
/// the reason. All members may be called from any thread.
class session {
 public:
  /// Throws std::invalid_argument for a description that makes no sense.
  explicit session(const simulated& machine = {});
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
  /// Takes back all rules, and with them the finding for those that have not fired.
  void forgive();

  /// Calls made so far, of one verb or of all. Calls that libibverbs makes within a call do not
  /// count.
  [[nodiscard]] std::uint64_t calls(verb call) const;
  [[nodiscard]] std::uint64_t calls() const;
  /// Every call so far, in order.
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
  /// Raises a port's event without changing anything.
  void raise(const std::string& device, ibv_event_type type, int port);
  /// Raises CQ_ERR for a queue, as an overrun would.
  void raise_cq_error(ibv_cq* cq);
  /// Raises an event on the channel of a queue that has no completion.
  void raise_spurious_event(ibv_cq* cq);
  /// Takes a device away: DEVICE_FATAL, and every later command fails with EIO.
  void unplug(const std::string& device);

 private:
  bool finished_ = false;
  int exceptions_;
};

}  // namespace ibvxx::shim
