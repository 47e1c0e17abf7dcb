// The RDMA context: a composition of owners that opens completely or not at all, and comes down in
// order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <ibvxx/context_resources.hpp>
#include <ibvxx/memory_registry.hpp>
#include <mutex>
#include <span>
#include <string>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Derived from what a context owns and what its port says; never stored.
enum class context_state : std::uint8_t {
  disabled,   ///< owns nothing
  enabled,    ///< complete, port active
  paused,     ///< complete; the port is not active, or pause() was called
  lost,       ///< the device is gone; only reset() is of use
  releasing,  ///< being reset, or a reset left something: call reset() again
};

[[nodiscard]] constexpr const char* name(context_state state) noexcept {
  switch (state) {
    case context_state::disabled:
      return "disabled";
    case context_state::enabled:
      return "enabled";
    case context_state::paused:
      return "paused";
    case context_state::lost:
      return "lost";
    case context_state::releasing:
      return "releasing";
  }
  return "?";
}

/// How much a context owns at one moment.
struct context_inventory {
  std::size_t devices = 0, pds = 0, epolls = 0, channels = 0, cqs = 0, notification_cqs = 0,
              regions = 0;

  [[nodiscard]] std::size_t total() const noexcept {
    return devices + pds + epolls + channels + cqs + notification_cqs + regions;
  }
  friend bool operator==(const context_inventory&, const context_inventory&) = default;
};

/// A device with everything a transport needs on it, in one object.
///
/// Ownership: everything that an accessor shows belongs to the context and lives until reset(), the
/// destructor, or a move assignment. Do not destroy it, and destroy what you made from it first.
/// Threads: every member but the constructors, the destructor and move assignment may be called
/// from any thread. enable() and reset() wait for each other. Pointers that an accessor returned
/// are as good as the context: whoever resets it sees to it that nobody uses them any more;
/// register_memory and unregister_memory need no such care.
class rdma_context {
 public:
  /// Owns nothing yet and calls nothing.
  explicit rdma_context(context_config config) noexcept : config_(std::move(config)) {}
  /// Constructs and enables.
  [[nodiscard]] static result<rdma_context> open(context_config config) noexcept {
    rdma_context context(std::move(config));
    if (auto enabled = context.enable(); !enabled) return failure(enabled.error());
    return context;
  }

  /// The source owns nothing afterwards, not even its configuration: assign to it or destroy it.
  rdma_context(rdma_context&& other) noexcept : config_(std::move(other.config_)) { take(other); }
  /// Destroys what this one owns, children first, then takes. What fails to go is handed to the
  /// teardown handler.
  rdma_context& operator=(rdma_context&& other) noexcept {
    if (this != &other) {
      destroy_or_report();
      config_ = std::move(other.config_);
      take(other);
    }
    return *this;
  }
  /// As reset(), but failures go to the teardown handler; what fails to go stays alive without an
  /// owner.
  ~rdma_context() { destroy_or_report(); }

  /// Opens everything. On failure nothing is owned that was not before, and it can be called again.
  /// On a context that is enabled already it is a success that does nothing; what an earlier
  /// reset() left is released first. Errors: those of the verbs it calls, EINVAL and ENODEV for a
  /// field of the configuration that cannot be met, ENOMEM.
  [[nodiscard]] result<void> enable() noexcept {
    const exclusive turn(*this, activity::enabling);
    if (complete(resources_)) return {};
    if (auto released = release_all(); !released) return released;
    auto opened = impl::catching_bad_alloc([this] { return impl::open_resources(config_); });
    if (!opened) return failure(opened.error());
    const std::lock_guard lock(control_);
    resources_.swap(opened->resources);
    facts_ = opened->facts;
    paused_by_hand_ = false;
    regions_.open(resources_.pd);
    return {};
  }

  /// Takes everything down: memory regions (after those calls that are under way), notification CQ,
  /// CQs, channels, epoll descriptor, PD, device. What fails to go stays owned, and so does what it
  /// was made from; everything else is released. The first error is returned and says what is left;
  /// calling again goes on from there. Owning nothing, it calls nothing.
  [[nodiscard]] result<void> reset() noexcept {
    const exclusive turn(*this, activity::resetting);
    return release_all();
  }

  [[nodiscard]] context_state state() const noexcept {
    const std::lock_guard lock(control_);
    return state_locked();
  }

  /// Success while enabled or paused, otherwise EAGAIN naming the state: the gate for incoming
  /// connections.
  [[nodiscard]] result<void> ready() const noexcept {
    const std::lock_guard lock(control_);
    return require_open_locked();
  }

  /// Holds the context in `paused` whatever its port does. An error unless enabled or paused.
  [[nodiscard]] result<void> pause() noexcept {
    const std::lock_guard lock(control_);
    if (auto open = require_open_locked(); !open) return open;
    paused_by_hand_ = true;
    return {};
  }

  /// Ends pause() and looks at the port again; the state then follows the port.
  [[nodiscard]] result<void> resume() noexcept {
    const exclusive turn(*this, activity::asking);
    {
      const std::lock_guard lock(control_);
      if (auto open = require_open_locked(); !open) return open;
    }
    auto port = query_port(resources_.device, facts_.port_number);
    if (!port) return failure(port.error());
    const std::lock_guard lock(control_);
    facts_.port = *port;
    paused_by_hand_ = false;
    return {};
  }

  /// Registers memory on the context's PD; the region belongs to the context until
  /// unregister_memory or reset(). The memory itself stays the caller's. ESHUTDOWN while the
  /// context is not open; otherwise the errors of reg_mr.
  [[nodiscard]] result<ibv_mr*> register_memory(void* address, std::size_t length,
                                                int access) noexcept {
    return regions_.add(address, length, access);
  }
  template <class T, std::size_t Extent>
  [[nodiscard]] result<ibv_mr*> register_memory(std::span<T, Extent> memory, int access) noexcept {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
    return register_memory(static_cast<void*>(memory.data()), memory.size_bytes(), access);
  }
  /// Deregisters a region of this context. EINVAL for any other pointer, also for one that is gone
  /// already; after any other error the region is still the context's.
  [[nodiscard]] result<void> unregister_memory(const ibv_mr* mr) noexcept {
    return regions_.remove(mr);
  }

  // What it owns: null, -1 or 0 while it does not.
  [[nodiscard]] ibv_context* device() const noexcept { return locked(resources_.device); }
  [[nodiscard]] ibv_pd* pd() const noexcept { return locked(resources_.pd); }
  [[nodiscard]] int epoll_fd() const noexcept { return locked(resources_.epoll); }
  [[nodiscard]] ibv_cq* notification_cq() const noexcept {
    return locked(resources_.notification_cq);
  }
  /// Null for an index that is out of range.
  [[nodiscard]] ibv_comp_channel* comp_channel(std::size_t index) const noexcept {
    return locked(resources_.channels, index);
  }
  [[nodiscard]] ibv_cq* cq(std::size_t index) const noexcept {
    return locked(resources_.cqs, index);
  }
  [[nodiscard]] std::size_t comp_channel_count() const noexcept { return owned().channels; }
  [[nodiscard]] std::size_t cq_count() const noexcept { return owned().cqs; }
  [[nodiscard]] context_inventory owned() const noexcept {
    const std::lock_guard lock(control_);
    return inventory(resources_);
  }

  // What it learned when it was opened; empty or 0 while nothing is owned.
  [[nodiscard]] int port() const noexcept { return facts().port_number; }
  [[nodiscard]] ibv_port_attr port_attributes() const noexcept { return facts().port; }
  [[nodiscard]] ibv_device_attr device_attributes() const noexcept { return facts().device; }
  [[nodiscard]] gid_choice gid() const noexcept { return facts().gid; }
  /// The configuration it was made with.
  [[nodiscard]] const context_config& config() const noexcept { return config_; }
  /// The memory registered by register_memory, in bytes.
  [[nodiscard]] std::size_t registered_bytes() const noexcept { return regions_.bytes(); }

 private:
  enum class activity : std::uint8_t { none, enabling, resetting, asking };

  /// One change of ownership at a time, without holding a lock while verbs run.
  class exclusive {
   public:
    exclusive(rdma_context& context, activity what) noexcept : context_(context) {
      std::unique_lock lock(context_.control_);
      context_.idle_.wait(lock, [this] { return context_.activity_ == activity::none; });
      context_.activity_ = what;
    }
    exclusive(const exclusive&) = delete;
    exclusive& operator=(const exclusive&) = delete;
    ~exclusive() {
      const std::lock_guard lock(context_.control_);
      context_.activity_ = activity::none;
      context_.idle_.notify_one();
    }

   private:
    rdma_context& context_;
  };

  [[nodiscard]] static bool complete(const impl::context_resources& r) noexcept {
    return static_cast<bool>(r.epoll);
  }

  [[nodiscard]] context_state state_locked() const noexcept {
    if (activity_ == activity::resetting) return context_state::releasing;
    if (!resources_.device) return context_state::disabled;
    // The epoll descriptor goes in every reset, since closing it cannot fail to free it: without
    // it, only remains are left.
    if (!complete(resources_)) return context_state::releasing;
    if (paused_by_hand_ || facts_.port.state != IBV_PORT_ACTIVE) return context_state::paused;
    return context_state::enabled;
  }

  [[nodiscard]] result<void> require_open_locked() const noexcept {
    const context_state now = state_locked();
    if (now == context_state::enabled || now == context_state::paused) return {};
    return failure(error(verb::none, EAGAIN)
                       .on(resources_.device.get())
                       .explain("the context is %s", name(now)));
  }

  template <class Owner>
  [[nodiscard]] typename Owner::pointer locked(const Owner& owner) const noexcept {
    const std::lock_guard lock(control_);
    return owner.get();
  }
  template <class Owner>
  [[nodiscard]] typename Owner::pointer locked(const std::vector<Owner>& owners,
                                               std::size_t index) const noexcept {
    const std::lock_guard lock(control_);
    return index < owners.size() ? owners[index].get() : nullptr;
  }

  [[nodiscard]] impl::context_facts facts() const noexcept {
    const std::lock_guard lock(control_);
    return resources_.device ? facts_ : impl::context_facts{};
  }

  [[nodiscard]] context_inventory inventory(const impl::context_resources& r) const noexcept {
    const auto owned = [](const auto& owners) {
      std::size_t count = 0;
      for (const auto& owner : owners) count += owner ? 1U : 0U;
      return count;
    };
    return {r.device ? 1U : 0U, r.pd ? 1U : 0U, r.epoll ? 1U : 0U,
            owned(r.channels),  owned(r.cqs),   r.notification_cq ? 1U : 0U,
            regions_.size()};
  }

  /// Needs the turn. The resources are moved aside first, so that nobody looks at owners that are
  /// going.
  [[nodiscard]] result<void> release_all() noexcept {
    result<void> outcome;
    const auto keep_first = [&outcome](const error& e) {
      if (outcome) outcome = failure(e);
    };
    const bool regions_gone = regions_.close(keep_first);
    impl::context_resources going;
    {
      const std::lock_guard lock(control_);
      going.swap(resources_);
    }
    going.destroy(!regions_gone, keep_first);
    const std::lock_guard lock(control_);
    going.swap(resources_);
    if (outcome) return outcome;
    return failure(with_remains(outcome.error(), inventory(resources_)));
  }

  [[nodiscard]] static error with_remains(error e, const context_inventory& left) noexcept {
    const struct {
      std::size_t count;
      const char* what;
    } rows[] = {{left.regions, "MR"}, {left.notification_cqs, "notification CQ"},
                {left.cqs, "CQ"},     {left.channels, "channel"},
                {left.pds, "PD"},     {left.devices, "device"}};
    const char* separator = "; left: ";
    for (const auto& row : rows) {
      if (row.count == 0) continue;
      e.explain("%s%zu %s", separator, row.count, row.what);
      separator = ", ";
    }
    return e;
  }

  void destroy_or_report() noexcept {
    const bool regions_gone = regions_.close([](const error& e) { detail::report_teardown(e); });
    regions_.abandon();
    resources_.destroy_or_report(!regions_gone);
  }

  void take(rdma_context& other) noexcept {
    resources_.swap(other.resources_);
    facts_ = other.facts_;
    paused_by_hand_ = std::exchange(other.paused_by_hand_, false);
    regions_.take(other.regions_);
  }

  context_config config_;
  mutable std::mutex control_;  // guards what follows, for as long as it takes to look or to swap
  std::condition_variable idle_;
  activity activity_ = activity::none;
  impl::context_resources resources_{};
  impl::context_facts facts_{};
  bool paused_by_hand_ = false;
  memory_registry
      regions_;  // has its own lock; declared last: regions go before the PD they were made from
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
