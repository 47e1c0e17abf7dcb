// The model's half for objects: which are alive, and what a destroy must return.
#pragma once

#include <cerrno>
#include <ibvxx/shim/ledger.hpp>
#include <initializer_list>
#include <map>
#include <vector>

namespace ibvxx::model_test {

using shim::finding_kind;
using shim::object_kind;

/// An object's number, given out in turn and never again; none is nothing.
using object_id = int;
inline constexpr object_id none = -1;

/// Every object of one program with what it was made from, and the findings that the program has
/// earned.
class objects {
 public:
  object_id add(object_kind kind, std::initializer_list<object_id> parents) {
    all_.push_back({kind, parents, 0, true});
    for (const object_id parent : parents)
      if (parent != none) ++at(parent).children;
    ++alive_[kind];
    return static_cast<object_id>(all_.size()) - 1;
  }
  [[nodiscard]] bool alive(object_id id) const { return id != none && at(id).alive; }
  [[nodiscard]] bool in_use(object_id id) const { return at(id).children != 0; }

  void remove(object_id id) {
    object& gone = at(id);
    gone.alive = false;
    --alive_[gone.kind];
    for (const object_id parent : gone.parents)
      if (parent != none) --at(parent).children;
  }

  [[nodiscard]] std::size_t count(object_kind kind) const {
    const auto found = alive_.find(kind);
    return found == alive_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::size_t count() const {
    std::size_t sum = 0;
    for (const auto& [kind, number] : alive_) sum += number;
    return sum;
  }

  /// What the program does wrong on purpose, and the session must find.
  std::map<finding_kind, std::size_t> findings{};

 private:
  struct object {
    object_kind kind;
    std::vector<object_id> parents;
    unsigned children;
    bool alive;
  };
  [[nodiscard]] object& at(object_id id) { return all_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const object& at(object_id id) const { return all_[static_cast<std::size_t>(id)]; }

  std::vector<object> all_{};
  std::map<object_kind, std::size_t> alive_{};
};

}  // namespace ibvxx::model_test
