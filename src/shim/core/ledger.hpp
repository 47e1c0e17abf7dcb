// The ledger: every object of a session, its parents, and whether it is alive.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <ibvxx/shim/ledger.hpp>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/call_stack.hpp"
#include "core/findings.hpp"

namespace ibvxx::shim {

/// Events read by the program against those that it acknowledged: a destroy waits for the two to be
/// equal, so too many acknowledgements hang it as well.
struct event_balance {
  unsigned read = 0;
  unsigned acknowledged = 0;
};

/// One object, from its creation to the end of the session: a record outlives the object.
struct record {
  object_kind kind;
  const void* handle;  ///< what the program holds
  std::string title;   ///< "cq#2 of sim0"
  verb maker;
  std::uint64_t made_by;  ///< index of the call
  std::uint64_t gone_by = 0;
  bool live = true;
  bool destroy_injected = false;  ///< a rule made a destroy of it fail, so it may be left alive
  bool destroyed_but_reported_failure = false;  ///< the destroy took effect
  const bool* lost = nullptr;          ///< whether its device was unplugged; null: no device
  const void* thread_scope = nullptr;  ///< what promises one thread at a time; null: any thread
  std::vector<record*> parents;
  unsigned children = 0;            ///< live objects made from it
  unsigned* live_counts = nullptr;  ///< its device's count of live objects of its kind
  event_balance completion_events{}, async_events{};
  /// Keeps a simulated object's memory, so that late uses hit no freed memory; null for what is the
  /// real library's.
  std::shared_ptr<void> storage;
  std::shared_ptr<const call_stack> made_at{}, gone_at{};  ///< null where not recorded
};

/// Not synchronised: needs the engine's lock. Costs: find() is constant; children_of(),
/// find_leaks() and unexcused() are linear in the objects of the session, whose records stay until
/// its end.
class ledger {
 public:
  /// Records a new object. Null parents are skipped.
  record& add(object_kind kind, const void* handle, std::shared_ptr<void> storage,
              const std::string& device, verb maker, std::uint64_t made_by,
              std::span<record* const> parents);
  record& add_descriptor(int fd, verb maker, std::uint64_t made_by);

  /// The record of a handle, alive or not; null for one that was never made here.
  [[nodiscard]] record* find(const void* handle) const noexcept;
  /// The latest record of a descriptor number.
  [[nodiscard]] record* find_descriptor(int fd) const noexcept;

  /// Replaces one parent of the object by another.
  void adopt(record& object, record& from, record& to);
  /// Records that the object was destroyed: its parents have one child less.
  void retire(record& object, std::uint64_t gone_by) noexcept;

  /// retire() for an object and everything made from it: the context of an unplugged device is
  /// closed. Costs: linear in the objects of the session for each object retired.
  void retire_tree(record& root, std::uint64_t gone_by) noexcept;

  [[nodiscard]] std::size_t live() const noexcept;
  [[nodiscard]] std::size_t live(object_kind kind) const noexcept {
    return live_[static_cast<std::size_t>(kind)];
  }
  /// "cq#1 of sim0, cq#2 of sim0": the live objects made from this one.
  [[nodiscard]] std::string children_of(const record& parent) const;

  /// From now on records keep the call stacks of creation and destruction.
  void keep_call_stacks() noexcept { call_stacks_ = true; }
  /// Adds a finding for every live object, the youngest first.
  void find_leaks(finding_log& findings) const;
  /// Live objects that no injected failure of a destroy explains, neither of their own nor of an
  /// object made from them.
  [[nodiscard]] std::vector<const record*> unexcused() const;
  [[nodiscard]] const std::deque<record>& records() const noexcept { return records_; }

 private:
  record& append(record&& made);

  std::deque<record> records_;  // in order of creation; addresses are stable
  std::unordered_map<const void*, record*> by_handle_;
  std::map<int, record*> by_descriptor_;
  std::array<std::size_t, object_kind_count> live_{};
  std::array<std::size_t, object_kind_count> made_{};
  bool call_stacks_ = false;
};

/// "made by ibv_create_cq (call 17)".
[[nodiscard]] std::string origin(const record& object);

}  // namespace ibvxx::shim
