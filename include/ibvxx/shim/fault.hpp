// Rules that make calls fail, or make something happen at a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ibvxx/verb.hpp>
#include <string>

namespace ibvxx::shim {

/// A rule in the making: `session.fail(verb::create_cq).nth(2).with(ENOMEM)`. Nothing is in force
/// before with(), without_errno(), unplug() or run(). Every member throws std::logic_error, with
/// the reason, for a rule that makes no sense.
class [[nodiscard]] fault {
 public:
  /// Which matching call, counted from when the rule is made: 1 is the next, and the default.
  fault nth(std::uint64_t n) const;
  /// How many calls from that one on; 1 is the default.
  fault times(std::uint64_t count) const;
  /// That one and every later one.
  fault persistently() const;
  /// Only calls on this object.
  fault on(const void* object) const;
  /// Only calls of the thread that says so.
  fault on_this_thread() const;

  /// For verbs that return the error number: it comes negative, as from some providers.
  fault negated() const;
  /// For verbs that take a list of requests: the k-th, counted from 1, is refused. Those before it
  /// are accepted, those behind it are not looked at, and bad_wr points at it. A list that is
  /// shorter goes through, and the rule has not fired.
  fault at_request(std::size_t k) const;
  /// The call takes effect, and reports the failure all the same. For verbs that change an object,
  /// and for destroys: the object is gone then, what it was made from is free, and a second destroy
  /// finds nothing (ENOENT, as from the kernel). Not for those that make objects, whose effect
  /// nobody could see, nor for those that only ask.
  fault after_effect() const;

  /// The errno; completes the rule and puts it in force.
  void with(int code) const;
  /// For verbs that return a pointer: null, with errno left at 0. Completes the rule.
  void without_errno() const;
  /// Takes a device away at the call, before it does anything. Completes the rule.
  void unplug(std::string device) const;
  /// Instead of failing the call, does `action` before it, on the calling thread: change a port, or
  /// wait at a barrier to hold the call there. Verbs that the action calls are carried out, but
  /// neither counted nor traced, and no rule strikes them.
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
