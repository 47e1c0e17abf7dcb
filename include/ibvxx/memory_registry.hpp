// The memory regions that belong to a context: registered and deregistered from many threads, torn
// down by one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <ibvxx/memory.hpp>
#include <list>
#include <map>
#include <mutex>

namespace ibvxx::inline IBVXX_RESULT_KIND {

namespace impl {

/// Runs `work`, which may allocate, and turns bad_alloc into an ENOMEM error. Without exceptions
/// there is nothing to catch: the allocation function ends the program then.
template <class Work>
[[nodiscard]] auto catching_bad_alloc(Work&& work) noexcept -> decltype(work()) {
#if defined(__cpp_exceptions)
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return failure(error(verb::allocate, ENOMEM));
  }
#else
  return work();
#endif
}

}  // namespace impl

/// Owns memory regions of one protection domain.
///
/// `add` and `remove` are safe from any number of threads, against each other and against `close`.
/// No lock is held while a verb runs. `open`, `close`, and moving belong to whoever owns the
/// registry, one thread at a time.
class memory_registry {
 public:
  memory_registry() noexcept = default;
  memory_registry(const memory_registry&) = delete;
  memory_registry& operator=(const memory_registry&) = delete;
  /// Closes. What fails to go is handed to the teardown handler and left alive, since its
  /// protection domain is too.
  ~memory_registry() {
    close([](const error& e) { detail::report_teardown(e); });
    abandon();
  }

  /// Admits registrations on `pd`, which must stay alive until the registry is closed and empty.
  void open(ref<ibv_pd> pd) noexcept {
    const std::lock_guard lock(mutex_);
    pd_ = pd.get();
  }

  /// Registers memory; the region belongs to the registry. ESHUTDOWN while it is not open;
  /// otherwise the errors of reg_mr.
  [[nodiscard]] result<ibv_mr*> add(void* address, std::size_t length, int access) noexcept {
    ibv_pd* const pd = enter();
    if (!pd) return failure(refused(verb::reg_mr));
    auto added = impl::catching_bad_alloc([&] { return add_to(pd, address, length, access); });
    leave();
    return added;
  }

  /// Deregisters a region. Anything that is not here (foreign, gone already, or being removed by
  /// another thread) is EINVAL. After a failed deregistration the region is still here.
  [[nodiscard]] result<void> remove(const ibv_mr* mr) noexcept {
    if (!enter()) return failure(refused(verb::dereg_mr));
    auto removed = remove_inside(mr);
    leave();
    return removed;
  }

  /// Refuses later calls, waits for those under way, then deregisters everything, the youngest
  /// first. Each failure is passed to `failed`; what fails to go stays, and calling again tries it
  /// again. Returns true when nothing is left.
  template <class Sink>
  bool close(Sink&& failed) noexcept {
    close_gate();
    region_list going;
    region_index entries;
    {
      const std::lock_guard lock(mutex_);
      going.swap(regions_);
      entries.swap(index_);
    }
    for (auto region = going.end(); region != going.begin();) {
      --region;
      const ibv_mr* const mr = region->get();
      if (auto gone = region->reset(); !gone) {
        failed(gone.error());
        continue;
      }
      entries.erase(mr);
      region = going.erase(region);
    }
    const std::lock_guard lock(mutex_);
    regions_.swap(going);
    index_.swap(entries);
    return regions_.empty();
  }

  /// Lets go of the regions without deregistering them.
  void abandon() noexcept {
    for (unique_mr& region : regions_) static_cast<void>(region.release());
    regions_.clear();
    index_.clear();
  }

  /// How many regions are here, not counting those being removed right now.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::lock_guard lock(mutex_);
    return index_.size();
  }
  /// The bytes registered in all.
  [[nodiscard]] std::size_t bytes() const noexcept {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const unique_mr& region : regions_) sum += region ? region->length : 0;
    return sum;
  }

  /// Takes the regions and the gate of another registry that no other thread is using; this one
  /// must be closed and empty.
  void take(memory_registry& other) noexcept {
    regions_.swap(other.regions_);
    index_.swap(other.index_);
    std::swap(pd_, other.pd_);
  }

 private:
  using region_list = std::list<unique_mr>;
  using region_index = std::map<const ibv_mr*, region_list::iterator>;

  [[nodiscard]] ibv_pd* enter() noexcept {
    const std::lock_guard lock(mutex_);
    if (pd_) ++inside_;
    return pd_;
  }
  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) nobody_inside_.notify_all();
  }
  void close_gate() noexcept {
    std::unique_lock lock(mutex_);
    pd_ = nullptr;
    nobody_inside_.wait(lock, [this] { return inside_ == 0; });
  }

  [[nodiscard]] static error refused(verb call) noexcept {
    return error(call, ESHUTDOWN)
        .explain("the context takes no registrations: it is not open, or being reset");
  }

  [[nodiscard]] result<ibv_mr*> add_to(ibv_pd* pd, void* address, std::size_t length, int access) {
    // All that may run out of memory comes first, so that nothing can fail once the region exists.
    region_list region;
    region.emplace_back();
    region_index entry;
    auto node = entry.extract(entry.emplace(nullptr, region.begin()).first);
    auto registered = reg_mr(pd, address, length, access);
    if (!registered) return failure(registered.error());
    ibv_mr* const mr = registered->get();
    region.front() = std::move(*registered);
    node.key() = mr;

    const std::lock_guard lock(mutex_);
    regions_.splice(regions_.end(), region);
    index_.insert(std::move(node));
    return mr;
  }

  [[nodiscard]] result<void> remove_inside(const ibv_mr* mr) noexcept {
    region_list region;
    typename region_index::node_type node;
    {
      const std::lock_guard lock(mutex_);
      const auto found = index_.find(mr);
      if (found == index_.end())
        return failure(
            error(verb::dereg_mr, EINVAL)
                .explain("%p is no region registered here", static_cast<const void*>(mr)));
      region.splice(region.end(), regions_, found->second);
      node = index_.extract(found);
    }
    auto gone = region.front().reset();
    if (!gone) {
      const std::lock_guard lock(mutex_);
      regions_.splice(regions_.end(), region);
      index_.insert(std::move(node));
    }
    return gone;
  }

  mutable std::mutex mutex_;
  std::condition_variable nobody_inside_;
  ibv_pd* pd_ = nullptr;  // null: the gate is closed
  int inside_ = 0;        // calls between enter and leave
  region_list regions_;   // in order of registration
  region_index index_;
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
