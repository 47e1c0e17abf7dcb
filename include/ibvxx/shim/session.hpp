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

  /// What was found so far.
  [[nodiscard]] std::vector<finding> findings() const;
  /// Ends the session: adds what leaked and which rules never fired, and returns all findings. The
  /// destructor has nothing to complain about afterwards.
  std::vector<finding> finish();

  /// Changes a port as the world would: an unplugged cable, a switch coming up.
  void set_port_state(const std::string& device, int port, ibv_port_state state);
  /// Changes a slot of a port's GID table.
  void set_gid(const std::string& device, int port, int index, const gid_slot& slot);

 private:
  bool finished_ = false;
  int exceptions_;
};

}  // namespace ibvxx::shim
