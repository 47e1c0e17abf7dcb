// Ranges of addresses that may overlap, searched by address. Header only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ibvxx::shim {

/// A treap (a search tree that random priorities keep balanced) by begin of range, in which each
/// node knows the greatest end below it. Costs: insert() and erase() are logarithmic,
/// for_each_overlap() is logarithmic for each range that it finds; memory is linear in the most
/// ranges at a time. Ranges of length 0 overlap nothing. Not synchronised.
template <class T>
class interval_index {
 public:
  /// Names a range until it is erased; 0 names none.
  using place = std::uint32_t;

  /// Adds [begin, end). Equal begins stay in order of insertion.
  place insert(std::uint64_t begin, std::uint64_t end, const T& value) {
    place made = free_;
    if (made != 0) {
      free_ = at(made).left;
    } else {
      if (nodes_.empty()) nodes_.emplace_back();  // that place 0 names nothing
      made = static_cast<place>(nodes_.size());
      nodes_.emplace_back();
    }
    at(made) = {begin, end, end, 0, 0, 0, next_priority(), value};
    place before = 0, after = 0;
    split(root_, begin, before, after);
    set_root(merge(merge(before, made), after));
    ++size_;
    return made;
  }
  void erase(place gone) noexcept {
    const place parent = at(gone).parent;
    const place joined = merge(at(gone).left, at(gone).right);
    if (joined != 0) at(joined).parent = parent;
    if (parent == 0)
      root_ = joined;
    else
      (at(parent).left == gone ? at(parent).left : at(parent).right) = joined;
    for (place one = parent; one != 0; one = at(one).parent) update(one);
    at(gone).left = free_;
    free_ = gone;
    --size_;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Calls `look` with the value of each range that has bytes of [begin, end), by their begin,
  /// until one call returns true. Whether one did. `look` must not change the index.
  template <class Look>
  bool for_each_overlap(std::uint64_t begin, std::uint64_t end, Look&& look) const {
    return begin < end && visit(root_, begin, end, look);
  }

 private:
  struct node {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t greatest = 0;  // the greatest end of this and the nodes below
    place left = 0, right = 0, parent = 0;
    std::uint32_t priority = 0;
    T value{};
  };

  [[nodiscard]] node& at(place one) noexcept { return nodes_[one]; }
  [[nodiscard]] const node& at(place one) const noexcept { return nodes_[one]; }
  /// xorshift32 (Marsaglia 2003): the same tree in every run.
  std::uint32_t next_priority() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    return random_;
  }
  void update(place one) noexcept {
    node& n = at(one);
    n.greatest = n.end;
    for (const place below : {n.left, n.right})
      if (below != 0) n.greatest = std::max(n.greatest, at(below).greatest);
  }
  void set_root(place root) noexcept {
    root_ = root;
    if (root != 0) at(root).parent = 0;
  }
  void set_left(place above, place below) noexcept {
    at(above).left = below;
    if (below != 0) at(below).parent = above;
    update(above);
  }
  void set_right(place above, place below) noexcept {
    at(above).right = below;
    if (below != 0) at(below).parent = above;
    update(above);
  }
  /// Those that begin at `begin` or before, and those behind. The depth of the recursion is
  /// that of the tree.
  void split(place tree, std::uint64_t begin, place& before, place& after) noexcept {
    if (tree == 0) {
      before = after = 0;
    } else if (at(tree).begin <= begin) {
      place rest = 0;
      split(at(tree).right, begin, rest, after);
      set_right(tree, rest);
      before = tree;
    } else {
      place rest = 0;
      split(at(tree).left, begin, before, rest);
      set_left(tree, rest);
      after = tree;
    }
  }
  /// All of `before` begin before all of `after`.
  [[nodiscard]] place merge(place before, place after) noexcept {
    if (before == 0 || after == 0) return before == 0 ? after : before;
    if (at(before).priority >= at(after).priority) {
      set_right(before, merge(at(before).right, after));
      return before;
    }
    set_left(after, merge(before, at(after).left));
    return after;
  }
  template <class Look>
  bool visit(place tree, std::uint64_t begin, std::uint64_t end, Look&& look) const {
    for (; tree != 0 && at(tree).greatest > begin; tree = at(tree).right) {
      const node& n = at(tree);
      if (n.left != 0 && visit(n.left, begin, end, look)) return true;
      if (n.begin >= end) return false;
      if (n.end > begin && n.begin < n.end && look(n.value)) return true;
    }
    return false;
  }

  std::vector<node> nodes_{};
  place root_ = 0;
  place free_ = 0;
  std::size_t size_ = 0;
  std::uint32_t random_ = 0x9e3779b9;
};

}  // namespace ibvxx::shim
