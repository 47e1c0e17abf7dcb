// Rules that make calls fail, or run an action at a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ibvxx/verb.hpp>
#include <string>

namespace ibvxx::shim {

/// A rule that is being built: `session.fail(verb::create_cq).nth(2).with(ENOMEM)`. It takes effect
/// at with(), without_errno(), unplug() or run(). Every member throws std::logic_error, with the
/// reason, for a rule that is not valid.
class [[nodiscard]] fault {
 public:
  /// The first matching call that is affected, counted from the creation of the rule: 1 is the
  /// next, and the default.
  fault nth(std::uint64_t n) const;
  /// The number of calls from that one on; 1 is the default.
  fault times(std::uint64_t count) const;
  /// That one and every later one.
  fault persistently() const;
  /// Only calls on this object.
  fault on(const void* object) const;
  /// Only calls of the thread that calls this member.
  fault on_this_thread() const;

  /// For verbs that return the errno: it is returned negated, as by some providers.
  fault negated() const;
  /// For verbs that take a list of requests: the k-th, counted from 1, is refused. The requests
  /// before it are accepted, those behind it are not processed, and bad_wr points at it. A shorter
  /// list succeeds, and the rule has not fired.
  fault at_request(std::size_t k) const;
  /// The call takes effect and reports the failure all the same. For verbs that change an object,
  /// and for destroys: the object is destroyed then, its parents are no longer in use, and a second
  /// destroy does not find it (ENOENT, as from the kernel). Not for verbs that create objects,
  /// since the program would not get the object, nor for queries.
  fault after_effect() const;

  /// The errno. Completes the rule, which then takes effect.
  void with(int code) const;
  /// For verbs that return a pointer: they return null and leave errno at 0. Completes the rule.
  void without_errno() const;
  /// Removes a device at the call, before the call takes effect. Completes the rule.
  void unplug(std::string device) const;
  /// Runs `action` before the call, on the calling thread, instead of failing it: to change a port,
  /// or to wait at a barrier and so hold the call there. Verbs that the action calls are executed,
  /// but not counted or traced, and no rule applies to them. Completes the rule.
  void run(std::function<void()> action) const;

 private:
  friend class session;
  explicit fault(verb call, std::uint64_t index = 0) noexcept : call_(call), index_(index) {}
  void put_in_force(int code, std::function<void()> action) const;

  verb call_;
  std::uint64_t index_;
  std::uint64_t nth_ = 1;
  std::uint64_t times_ = 1;
  const void* object_ = nullptr;
  std::size_t request_ = 0;
  bool this_thread_ = false;
  bool negated_ = false;
  bool after_effect_ = false;
  bool unspecified_ = false;
};

}  // namespace ibvxx::shim
