#include "forward/operations.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "core/engine.hpp"
#include "core/never_destroyed.hpp"

namespace ibvxx::shim {
namespace {

// The shim's operations outlast the session that put them in place, as long as their context or
// object exists; a new one at the same address brings its own operations. Costs: a look-up is
// constant, under a shared lock.
struct original_table {
  std::shared_mutex lock;
  std::unordered_map<const ibv_context*, std::unique_ptr<const verbs_context>> of;
  std::unordered_map<const void*, object_operations> of_objects;
};

original_table& originals() {
  static never_destroyed<original_table> table;
  return table.value;
}

constinit engine::fork_guard originals_guard{[]() noexcept { originals().lock.lock(); },
                                             []() noexcept { originals().lock.unlock(); }};

/// Makes the table as well: a fork could come into the making at its first use.
[[gnu::constructor(101)]] void guard_originals() noexcept {
  static_cast<void>(originals());
  engine::guard_forks(originals_guard);
}

}  // namespace

const verbs_context& original_operations(const ibv_context& context) noexcept {
  original_table& table = originals();
  const std::shared_lock lock(table.lock);
  return *table.of.at(&context);
}

const object_operations& original_operations(const void* object) noexcept {
  original_table& table = originals();
  const std::shared_lock lock(table.lock);
  return table.of_objects.at(object);
}

void remember_operations(const void* object, const object_operations& operations) {
  original_table& table = originals();
  const std::unique_lock lock(table.lock);
  table.of_objects[object] = operations;
}

void replace_operations(ibv_context& context, const verbs_context& ours) {
  auto before = std::make_unique<verbs_context>();
  before->context.ops = context.ops;
  // The structure grows at its front: an older library's lacks the first operations.
  verbs_context* const extended = ::verbs_get_ctx(&context);
  constexpr std::size_t end = offsetof(verbs_context, _ABI_placeholder3);
  const std::size_t begin =
      extended ? sizeof(verbs_context) - std::min(extended->sz, sizeof(verbs_context)) : end;
  const auto replace_all = [](void* theirs, void* original, const void* replacement,
                              std::size_t size) {
    using slot_value = void (*)();
    for (std::size_t at = 0; at < size; at += sizeof(slot_value)) {
      slot_value own = nullptr;
      std::memcpy(&own, static_cast<const std::byte*>(replacement) + at, sizeof own);
      slot_value* const slot = reinterpret_cast<slot_value*>(static_cast<std::byte*>(theirs) + at);
      std::memcpy(static_cast<std::byte*>(original) + at, slot, sizeof own);
      // A verb that the provider lacks stays null.
      if (own && *slot) *slot = own;
    }
  };
  replace_all(&context.ops, &before->context.ops, &ours.context.ops, sizeof context.ops);
  if (extended)
    replace_all(reinterpret_cast<std::byte*>(extended) + begin,
                reinterpret_cast<std::byte*>(before.get()) + begin,
                reinterpret_cast<const std::byte*>(&ours) + begin, end - begin);
  original_table& table = originals();
  const std::unique_lock lock(table.lock);
  table.of[&context] = std::move(before);
}

}  // namespace ibvxx::shim
