// The ledger: every object of a session, its parents, and whether it is alive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ibvxx/shim/ledger.hpp>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
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

/// What an object is called in texts: "CQ#2 of sim0", "descriptor 7". Kept in this form, since most
/// objects are never named. Converts to std::string; valid as long as the ledger that made it.
class object_title {
 public:
  object_title() = default;  // of no object: ""
  object_title(object_kind kind, std::uint64_t number, const std::string* device) noexcept
      : number_(number), device_(device), kind_(kind) {}
  [[nodiscard]] std::string text() const;
  operator std::string() const { return text(); }

  friend std::string operator+(std::string left, const object_title& right) {
    return std::move(left) + right.text();
  }
  friend std::string operator+(const object_title& left, const char* right) {
    return left.text() + right;
  }

 private:
  std::uint64_t number_ = 0;  // of the objects of its kind, from 1; of a descriptor itself
  const std::string* device_ = nullptr;  // null: none
  object_kind kind_ = object_kind::device_list;
};

struct record;

/// A parent of an object, and the object's place among the parent's live children.
struct parent_link {
  record* parent;
  record* child;
  parent_link* previous = nullptr;
  parent_link* next = nullptr;
};

/// One object. A record outlives its object for a while: ledger::remembered.
struct record {
  object_kind kind;
  const void* handle;  ///< what the program holds
  object_title title;
  verb maker;
  std::uint64_t serial = 0;  ///< of the objects of the session, in order of creation, from 1
  std::uint64_t made_by;     ///< index of the call
  std::uint64_t gone_by = 0;
  bool live = true;
  bool destroy_injected = false;  ///< a rule made a destroy of it fail, so it may be left alive
  bool destroyed_but_reported_failure = false;  ///< the destroy took effect
  const bool* lost = nullptr;          ///< whether its device was unplugged; null: no device
  const void* thread_scope = nullptr;  ///< what promises one thread at a time; null: any thread
  std::vector<parent_link> parents{};
  unsigned children = 0;            ///< live objects made from it
  unsigned* live_counts = nullptr;  ///< its device's count of live objects of its kind
  event_balance completion_events{}, async_events{};
  /// Keeps a simulated object's memory, so that late uses hit no freed memory; null for what is the
  /// real library's.
  std::shared_ptr<void> storage{};
  std::shared_ptr<const call_stack> made_at{}, gone_at{};  ///< null where not recorded

  // For the ledger only.
  std::list<record>::iterator place{};  ///< in the list that has it
  parent_link* first_child = nullptr;
  parent_link* last_child = nullptr;
  std::vector<record*> kept{};  ///< ledger::keep
  unsigned users = 0;           ///< why it must stay: records that refer to it, and pins
  bool aside = false;           ///< not remembered any more, but still used
  std::array<int, 2> descriptors{-1, -1};
  std::multimap<std::uint64_t, record*>::iterator indexed{};
  bool has_index = false;
};

/// Not synchronised: needs the engine's lock.
///
/// Costs: an operation on one object is constant, or logarithmic in the live objects that have a
/// key; destroying it is linear in its parents. Memory is linear in the live objects: of those that
/// were destroyed the latest are remembered, and what live objects still refer to.
class ledger {
 public:
  /// How many destroyed objects are remembered, with their memory, so that a late use of one is
  /// recognised. The use of an older one finds a pointer that no verb returned.
  static constexpr std::size_t remembered = 4096;

  ledger() = default;
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;

  /// Records a new object. Null parents are skipped. The handle of a destroyed object may be used
  /// again: it is the new object's from now on.
  record& add(object_kind kind, const void* handle, std::shared_ptr<void> storage,
              std::string_view device, verb maker, std::uint64_t made_by,
              std::span<record* const> parents);
  record& add_descriptor(int fd, verb maker, std::uint64_t made_by);

  /// The record of a handle, alive or remembered; null for one that was never made here.
  [[nodiscard]] record* find(const void* handle) const noexcept;
  /// The latest record of a descriptor number.
  [[nodiscard]] record* find_descriptor(int fd) const noexcept;
  /// The live context or completion channel that a descriptor belongs to, whose destroy closes it;
  /// null where there is none.
  [[nodiscard]] const record* owner_of_descriptor(int fd) const noexcept;

  /// Gives a live object a second key, of its maker's choice and not unique, until it is destroyed.
  void index(record& object, std::uint64_t key);
  /// Calls `look` with each live object that has this key, the oldest first, until one returns
  /// true; that object, or null.
  template <class Look>
  [[nodiscard]] record* find_by_key(std::uint64_t key, Look&& look) const {
    for (auto one = by_key_.lower_bound(key); one != by_key_.end() && one->first == key; ++one)
      if (look(*one->second)) return one->second;
    return nullptr;
  }

  /// Replaces one parent of the object by another.
  void adopt(record& object, record& from, record& to);
  /// The memory of `used` is needed as long as that of `object`, though it is no parent.
  void keep(record& object, record& used);
  /// The record and its memory stay until unpin(): a call waits, with the engine's lock released,
  /// or another thread may still look at the memory.
  void pin(record& object) noexcept { ++object.users; }
  void unpin(record& object) noexcept { release(object); }

  /// Records that the object was destroyed: its parents have one child less.
  void retire(record& object, std::uint64_t gone_by) noexcept;
  /// retire() for an object and everything made from it, children before their parents: the context
  /// of an unplugged device is closed. Calls `retired` with each. Costs: linear in those objects.
  template <class Retired>
  void retire_tree(record& root, std::uint64_t gone_by, Retired&& retired) noexcept {
    // Depth first, and always into the youngest child, so that the depth is that of the tree.
    while (root.last_child) retire_tree(*root.last_child->child, gone_by, retired);
    retire(root, gone_by);
    retired(root);
  }

  /// How many objects were recorded, of every kind.
  [[nodiscard]] std::uint64_t created() const noexcept { return created_; }
  [[nodiscard]] std::size_t live() const noexcept;
  [[nodiscard]] std::size_t live(object_kind kind) const noexcept { return live_of(kind).size(); }
  /// The live objects of a kind, in order of creation.
  [[nodiscard]] const std::list<record>& live_of(object_kind kind) const noexcept {
    return live_[static_cast<std::size_t>(kind)];
  }
  /// The destroyed objects that are remembered, in the order in which they were destroyed.
  [[nodiscard]] const std::list<record>& destroyed() const noexcept { return destroyed_; }
  /// Calls `look` with every object that has a record, alive or not.
  template <class Look>
  void for_each(Look&& look) const {
    for (const std::list<record>* some : {&destroyed_, &aside_})
      for (const record& object : *some) look(object);
    for (const std::list<record>& kind : live_)
      for (const record& object : kind) look(object);
  }
  /// Every live object, in order of creation. Costs: n log n in their number.
  [[nodiscard]] std::vector<const record*> all_live() const;
  /// "CQ#1 of sim0, CQ#2 of sim0": the live objects made from this one; of many, the first few and
  /// how many more.
  [[nodiscard]] std::string children_of(const record& parent) const;

  /// From now on records keep the call stacks of creation and destruction.
  void keep_call_stacks() noexcept { call_stacks_ = true; }
  /// Adds a finding for every live object, the youngest first.
  void find_leaks(finding_log& findings) const;
  /// Live objects that no injected failure of a destroy explains, neither of their own nor of an
  /// object made from them.
  [[nodiscard]] std::vector<const record*> unexcused() const;

 private:
  record& append(object_kind kind, const void* handle, const object_title& title, verb maker,
                 std::uint64_t made_by);
  void own_descriptors(record& object);
  [[nodiscard]] const std::string* name_of(std::string_view device);
  void forget_some() noexcept;
  void release(record& object) noexcept;
  void erase(record& object) noexcept;

  std::set<std::string, std::less<>> devices_;  // names; titles point to them
  std::unordered_map<const void*, record*> by_handle_;
  std::unordered_map<int, record*> by_descriptor_;
  std::unordered_map<int, record*> owners_;  // of descriptors
  std::multimap<std::uint64_t, record*> by_key_;
  std::array<std::list<record>, object_kind_count> live_;  // in order of creation
  std::list<record> destroyed_;                            // in order of destruction
  std::list<record> aside_;  // destroyed, older than those, and still used
  std::array<std::uint64_t, object_kind_count> made_{};
  std::uint64_t created_ = 0;
  bool call_stacks_ = false;
};

/// "made by ibv_create_cq (call 17)".
[[nodiscard]] std::string origin(const record& object);

}  // namespace ibvxx::shim
