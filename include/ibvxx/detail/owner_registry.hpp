// Owners of one kind, used from many threads and released by one: the common part of the registries
// of memory regions and queue pairs.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <ibvxx/handle.hpp>
#include <list>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Owns objects created from one protection domain. Calls are admitted while the registry is open.
/// No lock is held while a verb runs.
///
/// `add`, `remove`, `acquire` and its leases, `size` and `visit` may be called from any thread,
/// also while `shut` runs. The other members are for the owner of the registry, one thread at a
/// time.
template <class Owner>
class owner_registry {
  struct entry {
    Owner owner{};
    unsigned leases = 0;
  };
  using entry_list = std::list<entry>;

 public:
  using clock = std::chrono::steady_clock;
  using object = std::remove_pointer_t<typename Owner::pointer>;

  owner_registry() noexcept = default;
  owner_registry(const owner_registry&) = delete;
  owner_registry& operator=(const owner_registry&) = delete;

  /// Admits calls. `pd` must stay alive until the registry is shut and empty.
  void open(ibv_pd* pd) noexcept {
    const std::lock_guard lock(mutex_);
    pd_ = pd;
  }

  /// Creates an object with `make(pd)`, which returns result<Owner>, and owns it.
  template <class Make>
  [[nodiscard]] result<object*> add(verb call, Make&& make) noexcept {
    ibv_pd* const pd = enter();
    if (!pd) return failure(refused(call));
    auto added = catching_bad_alloc([&] { return add_inside(pd, make); });
    leave();
    return added;
  }

  /// Destroys an object after its last lease has ended, which it waits for until `deadline`
  /// (EBUSY). `prepare(object)` is called directly before. EINVAL for an object that is not in the
  /// registry: foreign, already removed, or being removed by another thread. After any error the
  /// registry still owns the object.
  template <class Prepare>
  [[nodiscard]] result<void> remove(verb call, const object* wanted, clock::time_point deadline,
                                    Prepare&& prepare) noexcept {
    if (!enter()) return failure(refused(call));
    auto removed = remove_inside(call, wanted, deadline, prepare);
    leave();
    return removed;
  }

  /// While it exists, the object is not destroyed. It must not outlive the registry, and must not
  /// exist while the registry is swapped.
  class [[nodiscard]] lease {
   public:
    lease(lease&& other) noexcept
        : registry_(std::exchange(other.registry_, nullptr)), entry_(other.entry_) {}
    lease& operator=(lease&& other) noexcept {
      lease taken(std::move(other));
      std::swap(registry_, taken.registry_);
      std::swap(entry_, taken.entry_);
      return *this;
    }
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() {
      if (registry_) registry_->give_back(*entry_);
    }
    [[nodiscard]] object* get() const noexcept { return entry_->owner.get(); }
    [[nodiscard]] object* operator->() const noexcept { return get(); }

   private:
    friend owner_registry;
    lease(owner_registry& registry, entry& leased) noexcept
        : registry_(&registry), entry_(&leased) {}

    owner_registry* registry_;
    entry* entry_;
  };

  /// A lease of an object in the registry; EINVAL for any other pointer, ESHUTDOWN while shut.
  [[nodiscard]] result<lease> acquire(verb call, const object* wanted) noexcept {
    const std::lock_guard lock(mutex_);
    if (!pd_) return failure(refused(call));
    const auto found = index_.find(wanted);
    if (found == index_.end()) return failure(unknown(call, wanted));
    ++found->second->leases;
    ++inside_;
    return lease(*this, *found->second);
  }

  /// Refuses later calls, then waits for calls and leases in progress until `deadline`. False if
  /// some are left; later calls are refused all the same.
  [[nodiscard]] bool shut(clock::time_point deadline = clock::time_point::max()) noexcept {
    std::unique_lock lock(mutex_);
    pd_ = nullptr;
    return wait_until(lock, deadline, [this] { return inside_ == 0; });
  }

  /// Destroys everything, the youngest first. The registry must be shut, with no call or lease in
  /// progress. Each failure is passed to `failed`, which returns true to give the object up without
  /// destroying it. Other objects stay owned, and the call can be repeated. True if nothing is
  /// left.
  template <class Sink>
  bool destroy(Sink&& failed) noexcept {
    entry_list going;
    std::map<const object*, typename entry_list::iterator> entries;
    {
      const std::lock_guard lock(mutex_);
      going.swap(entries_);
      entries.swap(index_);
    }
    for (auto one = going.end(); one != going.begin();) {
      --one;
      const object* const handle = one->owner.get();
      if (auto gone = one->owner.reset(); !gone) {
        if (!failed(gone.error())) continue;
        static_cast<void>(one->owner.release());
      }
      entries.erase(handle);
      one = going.erase(one);
    }
    const std::lock_guard lock(mutex_);
    entries_.swap(going);
    index_.swap(entries);
    return entries_.empty();
  }

  /// Calls `work` with each object, the youngest first. The registry must be shut, with no call or
  /// lease in progress.
  template <class Work>
  void for_each(Work&& work) noexcept {
    for (auto one = entries_.rbegin(); one != entries_.rend(); ++one) work(one->owner.get());
  }

  /// Gives everything up without destroying it.
  void abandon() noexcept {
    for (entry& one : entries_) static_cast<void>(one.owner.release());
    entries_.clear();
    index_.clear();
  }

  /// The number of objects, without those being removed.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::lock_guard lock(mutex_);
    return index_.size();
  }

  /// Calls `look` with each object, under the lock: `look` must call no verb.
  template <class Look>
  void visit(Look&& look) const noexcept {
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, one] : index_) look(*handle);
  }

  /// Exchanges everything with another registry that no thread is using.
  void swap(owner_registry& other) noexcept {
    entries_.swap(other.entries_);
    index_.swap(other.index_);
    std::swap(pd_, other.pd_);
  }

 private:
  /// Waits for `done()`. time_point::max() means no deadline, which not every implementation of
  /// wait_until supports.
  template <class Done>
  [[nodiscard]] bool wait_until(std::unique_lock<std::mutex>& lock, clock::time_point deadline,
                                Done done) {
    if (deadline != clock::time_point::max()) return changed_.wait_until(lock, deadline, done);
    changed_.wait(lock, done);
    return true;
  }

  [[nodiscard]] ibv_pd* enter() noexcept {
    const std::lock_guard lock(mutex_);
    if (pd_) ++inside_;
    return pd_;
  }
  void give_back(entry& leased) noexcept {
    const std::lock_guard lock(mutex_);
    --leased.leases;
    --inside_;
    changed_.notify_all();
  }
  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    --inside_;
    changed_.notify_all();
  }

  [[nodiscard]] static error refused(verb call) noexcept {
    return error(call, ESHUTDOWN).explain("the context is not open, or being reset");
  }
  [[nodiscard]] static error unknown(verb call, const void* wanted) noexcept {
    return error(call, EINVAL).explain("%p does not belong to the context", wanted);
  }

  template <class Make>
  [[nodiscard]] result<object*> add_inside(ibv_pd* pd, Make& make) {
    // Everything that may run out of memory comes first, so that nothing can fail once the object
    // exists.
    entry_list made;
    made.emplace_back();
    std::map<const object*, typename entry_list::iterator> entries;
    auto node = entries.extract(entries.emplace(nullptr, made.begin()).first);
    auto owner = make(pd);
    if (!owner) return failure(owner.error());
    object* const handle = owner->get();
    made.front().owner = std::move(*owner);
    node.key() = handle;

    const std::lock_guard lock(mutex_);
    entries_.splice(entries_.end(), made);
    index_.insert(std::move(node));
    return handle;
  }

  template <class Prepare>
  [[nodiscard]] result<void> remove_inside(verb call, const object* wanted,
                                           clock::time_point deadline, Prepare& prepare) noexcept {
    entry_list going;
    typename std::map<const object*, typename entry_list::iterator>::node_type node;
    {
      std::unique_lock lock(mutex_);
      const auto found = index_.find(wanted);
      if (found == index_.end()) return failure(unknown(call, wanted));
      const auto one = found->second;
      // Without its index entry no other thread can lease it or remove it.
      node = index_.extract(found);
      if (!wait_until(lock, deadline, [&one] { return one->leases == 0; })) {
        const unsigned leases = one->leases;
        index_.insert(std::move(node));
        return failure(error(call, EBUSY).explain("%u lease(s) of it are still held", leases));
      }
      going.splice(going.end(), entries_, one);
    }
    prepare(going.front().owner.get());
    auto gone = going.front().owner.reset();
    if (!gone) {
      const std::lock_guard lock(mutex_);
      entries_.splice(entries_.end(), going);
      index_.insert(std::move(node));
    }
    return gone;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ibv_pd* pd_ = nullptr;  // null: calls are refused
  int inside_ = 0;        // calls and leases in progress
  entry_list entries_;    // in order of creation
  std::map<const object*, typename entry_list::iterator> index_;
};

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
