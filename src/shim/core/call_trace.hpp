// The calls of a session, as many as it keeps. Header only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <ibvxx/verb.hpp>

#include "core/ledger.hpp"

namespace ibvxx::shim {

/// A call in the trace. Its subject is a title, not a record: the record may be gone before the
/// trace is read.
struct traced_call {
  std::uint64_t index;
  verb call;
  const void* object;
  object_title subject;
  int injected;
};

/// The latest calls, the oldest first. Not synchronised: needs the engine's lock. Costs: every
/// member is constant; memory is linear in the capacity.
class call_trace {
 public:
  /// SIZE_MAX: every call.
  void set_capacity(std::size_t calls) noexcept { capacity_ = calls; }
  /// Adds a call and returns its place, which set_injected() takes.
  std::uint64_t add(const traced_call& one) {
    calls_.push_back(one);
    if (calls_.size() > capacity_) {
      calls_.pop_front();
      ++dropped_;
    }
    return dropped_ + calls_.size() - 1;
  }
  /// Does nothing for a call that the trace has dropped.
  void set_injected(std::uint64_t place, int code) noexcept {
    if (place >= dropped_ && place - dropped_ < calls_.size())
      calls_[static_cast<std::size_t>(place - dropped_)].injected = code;
  }
  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  [[nodiscard]] auto begin() const noexcept { return calls_.begin(); }
  [[nodiscard]] auto end() const noexcept { return calls_.end(); }

 private:
  std::deque<traced_call> calls_{};
  std::uint64_t dropped_ = 0;
  std::size_t capacity_ = SIZE_MAX;
};

}  // namespace ibvxx::shim
