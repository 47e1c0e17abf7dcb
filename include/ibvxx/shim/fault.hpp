// Rules that make calls fail, or make something happen at a call.
#pragma once

#include <cstdint>
#include <functional>
#include <ibvxx/verb.hpp>

namespace ibvxx::shim {

/// A rule in the making: `session.fail(verb::create_cq).nth(2).with(ENOMEM)`. Nothing is in force
/// before with() or run(). Every member throws std::logic_error, with the reason, for a rule that
/// makes no sense.
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
  /// The errno; completes the rule and puts it in force.
  void with(int code) const;
  /// Instead of failing the call, does `action` before it, on the calling thread: change a port, or
  /// wait at a barrier to hold the call there. What the action calls is not seen by the session.
  void run(std::function<void()> action) const;

 private:
  friend class session;
  explicit fault(verb call) noexcept : call_(call) {}
  void put_in_force(int code, std::function<void()> action) const;

  verb call_;
  std::uint64_t nth_ = 1;
  std::uint64_t times_ = 1;
  const void* object_ = nullptr;
  bool this_thread_ = false;
};

}  // namespace ibvxx::shim
