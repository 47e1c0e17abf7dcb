// The RDMA context: a composition of owners that opens completely or not at all, and comes down in
// order.
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

/// A device with everything a transport needs on it, in one object.
///
/// Ownership: everything that an accessor shows belongs to the context and lives until reset(), the
/// destructor, or a move assignment. Do not destroy it, and destroy what you made from it first.
/// Threads: every member but the constructors, the destructor and move assignment may be called
/// from any thread. enable(), reset(), resume() and process_async_events() wait for each other.
/// Pointers that an accessor returned are as good as the context: whoever resets it sees to it that
/// nobody uses them any more; register_memory, unregister_memory and use_qp need no such care.
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
  /// Not while leases of its queue pairs are held.
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
  /// As reset(), but it waits for as long as leases are held, and failures go to the teardown
  /// handler: what fails to go stays alive without an owner. Keeps errno.
  ~rdma_context() { destroy_or_report(); }

  /// Opens everything. On failure nothing is owned that was not before, and it can be called again.
  /// On a context that is enabled already it is a success that does nothing; what an earlier
  /// reset() left is released first. Errors: those of the verbs it calls, EINVAL and ENODEV for a
  /// field of the configuration that cannot be met, ENETDOWN where the port asked for, or every
  /// port in a search, is not active, ENODATA where there is no usable GID, ENOMEM; EIO for a lost
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

  /// Takes everything down: queue pairs (moved to ERR, the completion queues drained), memory
  /// regions, notification CQ, CQs, channels, epoll descriptor, PD, device. It waits for
  /// registrations under way, and up to config().release_timeout for leases: then it fails with
  /// EBUSY and changes nothing. What fails to go stays owned, and so does what it was made from;
  /// everything else is released. The first error is returned and says what is left; calling again
  /// goes on from there. Owning nothing, it calls nothing. On a device that is gone, whether its
  /// DEVICE_FATAL was read or not, what fails with EIO is let go of: the kernel's half is gone, and
  /// the error says "device lost".
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
    if (auto open = ready(); !open) return open;
    if (auto seen = refresh_port(); !seen) return seen;
    const std::lock_guard lock(control_);
    paused_by_hand_ = false;
    return {};
  }

  /// Reads every async event that is there, acknowledges it, and follows: the port's state and the
  /// GID choice are brought up to date, and a fatal device error makes the context `lost`. Returns
  /// how many events there were. `seen(const ibv_async_event&)` is called with each before it is
  /// acknowledged, also with those that concern queue pairs and queues. There, destroying what the
  /// event names, reset(), enable(), resume() and this function itself wait for ever. What was read
  /// is followed also when `seen` throws. Errors: EAGAIN naming the state unless enabled or paused;
  /// those of ibv_get_async_event, and of the questions that the events lead to: ENODATA where no
  /// usable GID is left, which pauses the context until there is one. A question that fails
  /// otherwise is asked again by the next call, whether there are events then or not.
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
  /// already; ESHUTDOWN while the context is not open: what it has then goes with reset(). After
  /// any other error the region is still the context's.
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
  /// when leases of it are still held after config().release_timeout, ESHUTDOWN once a reset() has
  /// begun; after any of them, and after a destroy that failed, it is still the context's.
  [[nodiscard]] result<void> destroy_qp(const ibv_qp* qp) noexcept {
    return qps_.remove(qp, deadline());
  }
  using qp_lease = detail::qp_registry::lease;
  /// A lease of a queue pair of this context, for posting to it: while the lease lives, neither
  /// destroy_qp nor reset() takes the queue pair down. Hold it for a batch, not for ever. EINVAL
  /// for any other pointer, ESHUTDOWN once a reset() has begun.
  [[nodiscard]] result<qp_lease> use_qp(const ibv_qp* qp) noexcept { return qps_.use(qp); }

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
    context_inventory inventory = resources_.inventory();
    inventory.regions = regions_.size();
    inventory.qps = qps_.size();
    return inventory;
  }

  // What it learned when it was opened, and from events since; empty or 0 while nothing is owned.
  [[nodiscard]] int port() const noexcept { return facts().port_number; }
  [[nodiscard]] ibv_port_attr port_attributes() const noexcept { return facts().port; }
  [[nodiscard]] ibv_device_attr device_attributes() const noexcept { return facts().device; }
  /// The GID to talk from, and why it was chosen.
  [[nodiscard]] gid_candidate gid() const noexcept { return facts().gid; }
  /// The configuration it was made with.
  [[nodiscard]] const context_config& config() const noexcept { return config_; }
  /// The memory registered by register_memory, in bytes.
  [[nodiscard]] std::size_t registered_bytes() const noexcept { return regions_.bytes(); }

 private:
  enum class activity : std::uint8_t { none, asking, resetting };

  /// One change at a time, without holding a lock while verbs run.
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

  /// Brings the facts up to date, now or, where an exception passes, on the way out.
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

  /// What lives on the resources but not among them.
  struct outside_users {
    const detail::qp_registry& qps;
    const detail::memory_registry& regions;
    [[nodiscard]] bool of_cq(const ibv_cq* cq) const noexcept { return cq && qps.uses(cq); }
    [[nodiscard]] bool of_pd() const noexcept { return qps.size() + regions.size() != 0; }
  };

  /// The epoll descriptor goes in every reset, since closing it cannot fail to free it: a device
  /// without it is what a reset left.
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

  // Following events; all of these need the turn.

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
  /// Asks what is in doubt. What cannot be found out stays so.
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

  // Taking down.

  [[nodiscard]] detail::qp_registry::clock::time_point deadline() const noexcept {
    using clock = detail::qp_registry::clock;
    const auto now = clock::now();
    // A timeout beyond what the clock can tell is for ever.
    return config_.release_timeout <
                   std::chrono::floor<std::chrono::milliseconds>(clock::time_point::max() - now)
               ? now + config_.release_timeout
               : clock::time_point::max();
  }
  void open_gates() noexcept {
    regions_.open(resources_.pd);
    qps_.open(resources_.pd);
  }
  /// Takes what the flushed queue pairs left on the completion queues.
  void drain() noexcept {
    ibv_wc completions[16];
    for (const unique_cq& cq : resources_.cqs) {
      // Twice its size is more than can be on it, also if the provider still flushes.
      for (int taken = 0; cq && taken <= 2 * cq->cqe;) {
        const auto some = poll_cq(cq, completions);
        if (!some || *some == 0) break;
        taken += static_cast<int>(*some);
      }
    }
  }

  /// Needs the turn. The resources are moved aside first, so that nobody looks at owners that are
  /// going.
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
      // Whoever resets may not have read DEVICE_FATAL, and cannot any more.
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
  mutable std::mutex control_;  // guards what follows, for as long as it takes to look or to swap
  std::condition_variable idle_;
  activity activity_ = activity::none;
  detail::context_resources resources_{};
  detail::context_facts facts_{};
  bool paused_by_hand_ = false;
  bool lost_ = false;
  bool port_in_doubt_ = false;  // an event said that it may have changed, and nobody knows yet
  bool gid_in_doubt_ = false;
  // They have locks of their own, and come last: what was made from the PD goes before it.
  detail::memory_registry regions_;
  detail::qp_registry qps_;
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
