// The memory regions that belong to a context.
#pragma once

#include <cstddef>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/detail/owner_registry.hpp>
#include <ibvxx/memory.hpp>

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Owns memory regions of one protection domain, registered and deregistered from many threads and
/// released by one.
///
/// `add`, `remove`, `size` and `bytes` may be called from any thread, also while `close` runs. No
/// lock is held while a verb runs, so a slow registration delays no other thread. `open`, `close`,
/// `abandon` and `swap` are for the owner of the registry.
class memory_registry {
 public:
  memory_registry() noexcept = default;
  memory_registry(const memory_registry&) = delete;
  memory_registry& operator=(const memory_registry&) = delete;
  /// Closes. A region whose deregistration fails is passed to the teardown handler and stays alive,
  /// and so does its protection domain. Keeps errno.
  ~memory_registry() {
    const detail::errno_guard keep;
    close(&detail::report_and_keep);
    abandon();
  }

  /// Admits registrations on `pd`, which must stay alive until the registry is closed and empty.
  void open(ref<ibv_pd> pd) noexcept { regions_.open(pd.get()); }

  /// Registers memory; the region belongs to the registry. ESHUTDOWN while it is not open;
  /// otherwise the errors of reg_mr.
  [[nodiscard]] result<ibv_mr*> add(void* address, std::size_t length, int access) noexcept {
    return regions_.add(verb::reg_mr,
                        [&](ibv_pd* pd) { return reg_mr(pd, address, length, access); });
  }

  /// Deregisters a region. EINVAL for a region that is not in the registry: foreign, already
  /// removed, or being removed by another thread. After a failed deregistration the registry still
  /// owns the region.
  [[nodiscard]] result<void> remove(const ibv_mr* mr) noexcept {
    // Regions have no leases, so there is nothing to wait for.
    return regions_.remove(verb::dereg_mr, mr, registry::clock::time_point{}, [](ibv_mr*) {});
  }

  /// Refuses later calls, waits for those in progress, then deregisters everything, the youngest
  /// first. Each failure is passed to `failed`, which returns true to give the region up without
  /// deregistering it. Other regions stay owned, and the call can be repeated. True if nothing is
  /// left.
  template <class Sink>
  bool close(Sink&& failed) noexcept {
    static_cast<void>(regions_.shut());
    return regions_.destroy(failed);
  }

  /// Gives the regions up without deregistering them.
  void abandon() noexcept { regions_.abandon(); }

  /// The number of regions, without those being removed.
  [[nodiscard]] std::size_t size() const noexcept { return regions_.size(); }
  /// The total size of the regions, in bytes.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t sum = 0;
    regions_.visit([&sum](const ibv_mr& mr) { sum += mr.length; });
    return sum;
  }

  /// Exchanges everything with another registry that no thread is using.
  void swap(memory_registry& other) noexcept { regions_.swap(other.regions_); }

 private:
  using registry = detail::owner_registry<unique_mr>;
  registry regions_;
};

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
