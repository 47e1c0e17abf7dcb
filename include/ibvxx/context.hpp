// The RDMA context: a composition of owners that opens completely or not at all, and is released in
// reverse order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <ibvxx/context_state.hpp>
#include <ibvxx/detail/context_open.hpp>
#include <ibvxx/detail/context_resources.hpp>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/detail/memory_registry.hpp>
#include <ibvxx/detail/qp_registry.hpp>
#include <ibvxx/events.hpp>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// A device with every object that a transport needs on it, in one owner.
///
/// Ownership: every object that an accessor returns belongs to the context until reset(), the
/// destructor or a move assignment. Do not destroy such an object. Destroy what you created from it
/// first.
///
/// Threads: every member except the constructors, the destructor and move assignment may be called
/// from any thread. enable(), reset(), resume() and process_async_events() wait for each other.
/// reset() invalidates the pointers from accessors: stop their other users first. register_memory,
/// unregister_memory and use_qp need no such precaution.
class rdma_context {
 public:
  /// Stores the configuration. Owns nothing yet and calls no verb.
  explicit rdma_context(context_config config) noexcept : config_(std::move(config)) {}
  /// Constructs and enables.
  [[nodiscard]] static result<rdma_context> open(context_config config) noexcept {
    rdma_context context(std::move(config));
    if (auto enabled = context.enable(); !enabled) return failure(enabled.error());
    return context;
  }

  /// The source owns nothing afterwards, not even its configuration: assign to it or destroy it. Do
  /// not move a context while leases of its queue pairs are held.
  rdma_context(rdma_context&& other) noexcept : config_(std::move(other.config_)) { take(other); }
  /// Destroys what this context owns, children first, then takes the other's. Failures are passed
  /// to the teardown handler.
  rdma_context& operator=(rdma_context&& other) noexcept {
    if (this != &other) {
      destroy_or_report();
      config_ = std::move(other.config_);
      take(other);
    }
    return *this;
  }
  /// Like reset(), but waits for leases without a limit. Failures are passed to the teardown
  /// handler; an object whose destroy failed stays alive without an owner. Keeps errno.
  ~rdma_context() { destroy_or_report(); }

  /// Opens everything. After a failure the context owns nothing that it did not own before, and the
  /// call can be repeated. On an open context it succeeds and does nothing. Objects that an earlier
  /// reset() left are released first. Errors: those of the verbs that it calls; EINVAL and ENODEV
  /// for a field of the configuration that cannot be satisfied; ENETDOWN if the configured port, or
  /// every port in a search, is not active; ENODATA without a usable GID; ENOMEM; EIO for a lost
  /// context, which must be reset first.
  [[nodiscard]] result<void> enable() noexcept {
    const exclusive turn(*this, activity::asking);
    if (complete()) {
      const std::lock_guard lock(control_);
      return lost_ ? failure(not_open_locked(EIO)) : result<void>();
    }
    if (auto released = release_all(); !released) return released;
    auto opened = detail::catching_bad_alloc([this] { return detail::open_resources(config_); });
    if (!opened) return failure(opened.error());
    const std::lock_guard lock(control_);
    resources_.swap(opened->resources);
    facts_ = opened->facts;
    paused_by_hand_ = lost_ = port_in_doubt_ = gid_in_doubt_ = false;
    open_gates();
    return {};
  }

  /// Releases everything: queue pairs (moved to ERR, the completion queues drained), memory
  /// regions, notification CQ, CQs, channels, epoll descriptor, PD, device. It waits for
  /// registrations in progress, and for leases up to config().release_timeout: then it fails with
  /// EBUSY and changes nothing. An object whose destroy fails stays owned, and so do the objects
  /// that it was created from; everything else is released. The first error is returned, with what
  /// is left; the next call continues from there. A context that owns nothing calls no verb. On a
  /// device that is gone, whether or not its DEVICE_FATAL was read, an object whose destroy fails
  /// with EIO is given up, since the kernel has freed its part; the error says "device lost".
  [[nodiscard]] result<void> reset() noexcept {
    const exclusive turn(*this, activity::resetting);
    return release_all();
  }

  [[nodiscard]] context_state state() const noexcept {
    const std::lock_guard lock(control_);
    return state_locked();
  }

  /// Success while enabled or paused, otherwise EAGAIN naming the state. Check it before accepting
  /// a connection.
  [[nodiscard]] result<void> ready() const noexcept {
    const std::lock_guard lock(control_);
    return require_open_locked();
  }

  /// Keeps the context `paused` whatever the state of its port, until resume(). EAGAIN naming the
  /// state unless enabled or paused.
  [[nodiscard]] result<void> pause() noexcept {
    const std::lock_guard lock(control_);
    if (auto open = require_open_locked(); !open) return open;
    paused_by_hand_ = true;
    return {};
  }

  /// Ends pause() and queries the port again; the state then follows the port. EAGAIN unless
  /// enabled or paused, and the errors of query_port.
  [[nodiscard]] result<void> resume() noexcept {
    const exclusive turn(*this, activity::asking);
    if (auto open = ready(); !open) return open;
    if (auto seen = refresh_port(); !seen) return seen;
    const std::lock_guard lock(control_);
    paused_by_hand_ = false;
    return {};
  }

  /// Reads and acknowledges every pending async event, and follows it: the port's state and the GID
  /// choice are updated, and a fatal device error makes the context `lost`. Returns the number of
  /// events. `seen(const ibv_async_event&)` is called with each event before it is acknowledged,
  /// also with events of queue pairs and queues. From `seen`, do not destroy the object that the
  /// event names, and do not call reset(), enable(), resume() or this function: they would wait for
  /// ever. If `seen` throws, the events that were read are still followed. Errors: EAGAIN naming
  /// the state unless enabled or paused; those of ibv_get_async_event and of the queries that the
  /// events cause; ENODATA if no usable GID is left, which pauses the context until there is one. A
  /// query that fails otherwise is repeated by the next call, even without new events.
  template <class Seen>
  [[nodiscard]] result<std::size_t> process_async_events(Seen&& seen) {
    const exclusive turn(*this, activity::asking);
    if (auto open = ready(); !open) return failure(open.error());
    follow_up afterwards(*this);
    std::size_t count = 0;
    result<void> outcome;
    for (;; ++count) {
      auto event = get_async_event(resources_.device);
      if (!event) {
        outcome = failure(event.error());
        // The kernel answers EIO once the device has been taken away (ib_uverbs_event_read).
        if (event.error().code() == EIO) mark_lost();
        break;
      }
      if (!*event) break;
      const ibv_async_event& what = (*event)->get();
      follow(what);
      seen(what);
    }
    if (auto asked = afterwards.now(); !asked && outcome) outcome = asked;
    if (!outcome) return failure(outcome.error());
    return count;
  }
  [[nodiscard]] result<std::size_t> process_async_events() noexcept {
    return process_async_events([](const ibv_async_event&) {});
  }

  /// Registers memory on the context's PD. The region belongs to the context until
  /// unregister_memory or reset(); the memory stays the caller's. ESHUTDOWN while the context is
  /// not open; otherwise the errors of reg_mr.
  [[nodiscard]] result<ibv_mr*> register_memory(void* address, std::size_t length,
                                                int access) noexcept {
    return regions_.add(address, length, access);
  }
  template <class T, std::size_t Extent>
  [[nodiscard]] result<ibv_mr*> register_memory(std::span<T, Extent> memory, int access) noexcept {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
    return register_memory(static_cast<void*>(memory.data()), memory.size_bytes(), access);
  }
  /// Deregisters a region of this context. EINVAL for any other pointer, also for a region that was
  /// deregistered; ESHUTDOWN while the context is not open: reset() releases its regions then.
  /// After any other error the context still owns the region.
  [[nodiscard]] result<void> unregister_memory(const ibv_mr* mr) noexcept {
    return regions_.remove(mr);
  }

  /// Creates a queue pair on the context's PD, in RESET; it belongs to the context until destroy_qp
  /// or reset(). Its completion queues are those of the context, or others that outlive it.
  /// ESHUTDOWN while the context is not open; otherwise as ibvxx::create_qp.
  [[nodiscard]] result<ibv_qp*> create_qp(ibv_qp_init_attr& attributes) noexcept {
    return qps_.add(attributes);
  }
  /// Moves a queue pair of this context to ERR and destroys it. EINVAL for any other pointer, EBUSY
  /// if leases of it are still held after config().release_timeout, ESHUTDOWN once a reset() has
  /// begun. After any of these errors, and after a failed destroy, the context still owns the queue
  /// pair.
  [[nodiscard]] result<void> destroy_qp(const ibv_qp* qp) noexcept {
    return qps_.remove(qp, deadline());
  }
  using qp_lease = detail::qp_registry::lease;
  /// A lease of a queue pair of this context, for posting to it: while the lease exists, neither
  /// destroy_qp nor reset() destroys the queue pair. Hold it for one batch, not permanently. EINVAL
  /// for any other pointer, ESHUTDOWN once a reset() has begun.
  [[nodiscard]] result<qp_lease> use_qp(const ibv_qp* qp) noexcept { return qps_.use(qp); }

  // The objects that it owns; null, -1 or 0 while there is none.
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
    context_inventory inventory = resources_.inventory();
    inventory.regions = regions_.size();
    inventory.qps = qps_.size();
    return inventory;
  }

  // Facts from opening and from later events; empty or 0 while nothing is owned.
  [[nodiscard]] int port() const noexcept { return facts().port_number; }
  [[nodiscard]] ibv_port_attr port_attributes() const noexcept { return facts().port; }
  [[nodiscard]] ibv_device_attr device_attributes() const noexcept { return facts().device; }
  /// The source GID, and why it was chosen.
  [[nodiscard]] gid_candidate gid() const noexcept { return facts().gid; }
  /// The configuration it was made with.
  [[nodiscard]] const context_config& config() const noexcept { return config_; }
  /// The memory registered by register_memory, in bytes.
  [[nodiscard]] std::size_t registered_bytes() const noexcept { return regions_.bytes(); }

 private:
  enum class activity : std::uint8_t { none, asking, resetting };

  /// Excludes other changes, without holding a lock while verbs run.
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

  /// Updates the facts: in now(), or in the destructor if an exception was thrown.
  class follow_up {
   public:
    explicit follow_up(rdma_context& context) noexcept : context_(&context) {}
    follow_up(const follow_up&) = delete;
    follow_up& operator=(const follow_up&) = delete;
    ~follow_up() {
      if (context_) static_cast<void>(context_->ask_anew());
    }
    [[nodiscard]] result<void> now() noexcept {
      return std::exchange(context_, nullptr)->ask_anew();
    }

   private:
    rdma_context* context_;
  };

  /// The objects created from the resources that the registries own.
  struct outside_users {
    const detail::qp_registry& qps;
    const detail::memory_registry& regions;
    [[nodiscard]] bool of_cq(const ibv_cq* cq) const noexcept { return cq && qps.uses(cq); }
    [[nodiscard]] bool of_pd() const noexcept { return qps.size() + regions.size() != 0; }
  };

  /// Every reset closes the epoll descriptor, since close(2) always frees it. A device without one
  /// is what a failed reset left.
  [[nodiscard]] bool complete() const noexcept { return static_cast<bool>(resources_.epoll); }

  [[nodiscard]] context_state state_locked() const noexcept {
    if (activity_ == activity::resetting) return context_state::releasing;
    if (!resources_.device) return context_state::disabled;
    if (!complete()) return context_state::releasing;
    if (lost_) return context_state::lost;
    const bool usable = facts_.port.state == IBV_PORT_ACTIVE && facts_.gid.usable();
    return usable && !paused_by_hand_ ? context_state::enabled : context_state::paused;
  }

  [[nodiscard]] error not_open_locked(int code) const noexcept {
    return error(verb::none, code)
        .on(resources_.device.get())
        .explain("the context is %s", name(state_locked()));
  }
  [[nodiscard]] result<void> require_open_locked() const noexcept {
    const context_state now = state_locked();
    if (now == context_state::enabled || now == context_state::paused) return {};
    return failure(not_open_locked(EAGAIN));
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
  [[nodiscard]] detail::context_facts facts() const noexcept {
    const std::lock_guard lock(control_);
    return resources_.device ? facts_ : detail::context_facts{};
  }

  // Following events. All of these run under `exclusive`.

  void mark_lost() noexcept {
    const std::lock_guard lock(control_);
    lost_ = true;
  }
  void follow(const ibv_async_event& event) noexcept {
    if (event.event_type == IBV_EVENT_DEVICE_FATAL) {
      mark_lost();
      return;
    }
    const auto ours = [&] { return event.element.port_num == facts_.port_number; };
    switch (event.event_type) {
      case IBV_EVENT_PORT_ACTIVE:
      case IBV_EVENT_PORT_ERR:
      case IBV_EVENT_LID_CHANGE:
      case IBV_EVENT_PKEY_CHANGE:
      case IBV_EVENT_SM_CHANGE:
      case IBV_EVENT_CLIENT_REREGISTER:
        port_in_doubt_ = port_in_doubt_ || ours();
        break;
      case IBV_EVENT_GID_CHANGE:
        if (ours()) port_in_doubt_ = gid_in_doubt_ = true;
        break;
      default:
        break;
    }
  }
  /// Repeats the queries whose results may have changed. A failed query stays marked.
  [[nodiscard]] result<void> ask_anew() noexcept {
    result<void> outcome;
    if (state() == context_state::lost) return outcome;
    if (port_in_doubt_) outcome = refresh_port();
    if (gid_in_doubt_)
      if (auto asked = refresh_gid(); !asked && outcome) outcome = asked;
    return outcome;
  }
  [[nodiscard]] result<void> refresh_port() noexcept {
    auto port = query_port(resources_.device, facts_.port_number);
    if (!port) return failure(port.error());
    const std::lock_guard lock(control_);
    facts_.port = *port;
    port_in_doubt_ = false;
    return {};
  }
  [[nodiscard]] result<void> refresh_gid() noexcept {
    auto chosen = detail::catching_bad_alloc(
        [this] { return detail::choose_configured_gid(config_, resources_.device, facts_); });
    const std::lock_guard lock(control_);
    if (chosen || chosen.error().code() == ENODATA) {
      facts_.gid = chosen ? *chosen : gid_candidate{};
      gid_in_doubt_ = false;
    }
    if (!chosen) return failure(chosen.error());
    return {};
  }

  // Release.

  [[nodiscard]] detail::qp_registry::clock::time_point deadline() const noexcept {
    using clock = detail::qp_registry::clock;
    const auto now = clock::now();
    // A timeout beyond the clock's range means no deadline.
    return config_.release_timeout <
                   std::chrono::floor<std::chrono::milliseconds>(clock::time_point::max() - now)
               ? now + config_.release_timeout
               : clock::time_point::max();
  }
  void open_gates() noexcept {
    regions_.open(resources_.pd);
    qps_.open(resources_.pd);
  }
  /// Polls the completions of the flushed queue pairs.
  void drain() noexcept {
    ibv_wc completions[16];
    for (const unique_cq& cq : resources_.cqs) {
      // No more than twice its size can be in it, even if the provider is still flushing.
      for (int taken = 0; cq && taken <= 2 * cq->cqe;) {
        const auto some = poll_cq(cq, completions);
        if (!some || *some == 0) break;
        taken += static_cast<int>(*some);
      }
    }
  }

  /// Runs under `exclusive`. The resources are moved aside first, so that accessors do not read
  /// owners that are being destroyed.
  [[nodiscard]] result<void> release_all() noexcept {
    if (!resources_.device) return {};
    if (!qps_.shut(deadline())) {
      open_gates();
      return failure(
          error(verb::destroy_qp, EBUSY)
              .on(resources_.device.get())
              .explain("queue pairs are still in use after %lld ms; nothing was released",
                       static_cast<long long>(config_.release_timeout.count())));
    }
    result<void> outcome;
    ibv_context* const device = resources_.device.get();
    const auto failed = [&](const error& e) {
      // The program may not have read DEVICE_FATAL, and cannot read it any more.
      const bool gone = e.code() == EIO && (lost_ || detail::device_is_gone(device));
      error told = e;
      if (gone) {
        mark_lost();
        told.explain("; device lost");
      }
      if (outcome) outcome = failure(told);
      return gone;
    };
    qps_.destroy([this] { drain(); }, failed);
    regions_.close(failed);
    detail::context_resources going;
    {
      const std::lock_guard lock(control_);
      going.swap(resources_);
    }
    going.destroy(outside_users{qps_, regions_}, failed);
    {
      const std::lock_guard lock(control_);
      going.swap(resources_);
    }
    if (outcome) return outcome;
    return failure(detail::with_remains(outcome.error(), owned()));
  }

  void destroy_or_report() noexcept {
    if (!resources_.device) return;
    const detail::errno_guard keep;
    qps_.shut();
    const auto failed = [this](const error& e) { return resources_.report(e); };
    qps_.destroy([this] { drain(); }, failed);
    regions_.close(failed);
    resources_.destroy_or_report(outside_users{qps_, regions_});
    qps_.abandon();
    regions_.abandon();
  }

  void take(rdma_context& other) noexcept {
    resources_.swap(other.resources_);
    facts_ = other.facts_;
    paused_by_hand_ = std::exchange(other.paused_by_hand_, false);
    lost_ = std::exchange(other.lost_, false);
    port_in_doubt_ = std::exchange(other.port_in_doubt_, false);
    gid_in_doubt_ = std::exchange(other.gid_in_doubt_, false);
    regions_.swap(other.regions_);
    qps_.swap(other.qps_);
  }

  context_config config_;
  mutable std::mutex control_;  // guards the members below; held only to read or swap them
  std::condition_variable idle_;
  activity activity_ = activity::none;
  detail::context_resources resources_{};
  detail::context_facts facts_{};
  bool paused_by_hand_ = false;
  bool lost_ = false;
  bool port_in_doubt_ = false;  // an event reported a change that is not queried yet
  bool gid_in_doubt_ = false;
  // Each has a lock of its own. They are declared last, so that they are destroyed before the PD.
  detail::memory_registry regions_;
  detail::qp_registry qps_;
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
