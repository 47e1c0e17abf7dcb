// Many owners of one kind, used from many threads and torn down by one: what the registries of
// memory regions and of queue pairs have in common.
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

/// Owns objects that were made from one protection domain. A gate admits calls while it is open; no
/// lock is held while a verb runs.
///
/// `add`, `remove`, `acquire` and its leases, `size` and `visit` are safe from any number of
/// threads, against each other and against `shut`. The rest belongs to whoever owns the registry,
/// one thread at a time.
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

  /// Opens the gate. `pd` must stay alive until the registry is shut and empty.
  void open(ibv_pd* pd) noexcept {
    const std::lock_guard lock(mutex_);
    pd_ = pd;
  }

  /// Makes an object with `make(pd)`, which returns result<Owner>, and keeps it.
  template <class Make>
  [[nodiscard]] result<object*> add(verb call, Make&& make) noexcept {
    ibv_pd* const pd = enter();
    if (!pd) return failure(refused(call));
    auto added = catching_bad_alloc([&] { return add_inside(pd, make); });
    leave();
    return added;
  }

  /// Destroys an object, once nobody has a lease of it any more; until `deadline` it waits for
  /// that. `prepare(object)` comes right before. EINVAL for what is not here: foreign, gone
  /// already, or being removed by another thread. After any error it is still here.
  template <class Prepare>
  [[nodiscard]] result<void> remove(verb call, const object* wanted, clock::time_point deadline,
                                    Prepare&& prepare) noexcept {
    if (!enter()) return failure(refused(call));
    auto removed = remove_inside(call, wanted, deadline, prepare);
    leave();
    return removed;
  }

  /// While it lives, the object is neither removed nor taken down. It must not outlive the
  /// registry, nor be there while the registry is moved.
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

  /// A lease of an object that is here; EINVAL for any other pointer, ESHUTDOWN while shut.
  [[nodiscard]] result<lease> acquire(verb call, const object* wanted) noexcept {
    const std::lock_guard lock(mutex_);
    if (!pd_) return failure(refused(call));
    const auto found = index_.find(wanted);
    if (found == index_.end()) return failure(unknown(call, wanted));
    ++found->second->leases;
    ++inside_;
    return lease(*this, *found->second);
  }

  /// Closes the gate, then waits until nobody is inside, or until `deadline`. False when somebody
  /// still is: the gate is closed all the same.
  [[nodiscard]] bool shut(clock::time_point deadline = clock::time_point::max()) noexcept {
    std::unique_lock lock(mutex_);
    pd_ = nullptr;
    return wait_until(lock, deadline, [this] { return inside_ == 0; });
  }

  /// Destroys everything, the youngest first; the registry is shut and nobody is inside. Each
  /// failure is passed to `failed`, which says whether the object is to be let go of all the same.
  /// What stays can be tried again. True when nothing is left.
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

  /// Calls `work` with each, the youngest first; the registry is shut and nobody is inside.
  template <class Work>
  void for_each(Work&& work) noexcept {
    for (auto one = entries_.rbegin(); one != entries_.rend(); ++one) work(one->owner.get());
  }

  /// Lets go of everything without destroying it.
  void abandon() noexcept {
    for (entry& one : entries_) static_cast<void>(one.owner.release());
    entries_.clear();
    index_.clear();
  }

  /// How many there are, not counting those being removed right now.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::lock_guard lock(mutex_);
    return index_.size();
  }

  /// Shows each to `look`, under the lock: no verbs there.
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
  /// Waits for `done()`; time_point::max() is for ever, which not every wait_until can tell.
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
    // All that may run out of memory comes first, so that nothing can fail once the object exists.
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
      // Without its index nobody can find it any more, to lease or to remove it.
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
  ibv_pd* pd_ = nullptr;  // null: the gate is closed
  int inside_ = 0;        // calls and leases under way
  entry_list entries_;    // in order of creation
  std::map<const object*, typename entry_list::iterator> index_;
};

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
