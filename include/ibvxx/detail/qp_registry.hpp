// The queue pairs that belong to a context.
#pragma once

#include <chrono>
#include <cstddef>
#include <ibvxx/detail/owner_registry.hpp>
#include <ibvxx/queue_pair.hpp>

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Owns queue pairs of one protection domain. Threads that post hold a lease, so that the queue
/// pair is not destroyed meanwhile. Thread safety is that of memory_registry.
class qp_registry {
 public:
  using registry = detail::owner_registry<unique_qp>;
  using clock = registry::clock;
  /// While it exists, the queue pair is not destroyed: see rdma_context::use_qp.
  using lease = registry::lease;

  qp_registry() noexcept = default;
  qp_registry(const qp_registry&) = delete;
  qp_registry& operator=(const qp_registry&) = delete;

  void open(ref<ibv_pd> pd) noexcept { qps_.open(pd.get()); }

  [[nodiscard]] result<ibv_qp*> add(ibv_qp_init_attr& attributes) noexcept {
    return qps_.add(verb::create_qp, [&](ibv_pd* pd) { return create_qp(pd, attributes); });
  }

  [[nodiscard]] result<lease> use(const ibv_qp* qp) noexcept {
    return qps_.acquire(verb::post_send, qp);
  }

  /// Moves a queue pair to ERR and destroys it, after waiting for its leases until `deadline`.
  [[nodiscard]] result<void> remove(const ibv_qp* qp, clock::time_point deadline) noexcept {
    return qps_.remove(verb::destroy_qp, qp, deadline,
                       [](ibv_qp* going) { static_cast<void>(to_error(going)); });
  }

  /// Refuses later calls and waits for leases and calls in progress until `deadline`. False if some
  /// are left: nothing may be destroyed then.
  [[nodiscard]] bool shut(clock::time_point deadline) noexcept { return qps_.shut(deadline); }
  /// Waits without a limit.
  void shut() noexcept { static_cast<void>(qps_.shut()); }

  /// Moves every queue pair to ERR, calls `drain()`, and destroys them, the youngest first.
  /// Otherwise as memory_registry::close.
  template <class Drain, class Sink>
  bool destroy(Drain&& drain, Sink&& failed) noexcept {
    bool any = false;
    qps_.for_each([&](ibv_qp* qp) {
      any = true;
      if (auto stopped = to_error(qp); !stopped) static_cast<void>(failed(stopped.error()));
    });
    if (any) drain();
    return qps_.destroy(failed);
  }

  void abandon() noexcept { qps_.abandon(); }

  /// True if a queue pair in the registry completes to `cq`.
  [[nodiscard]] bool uses(const ibv_cq* cq) const noexcept {
    bool any = false;
    qps_.visit([&](const ibv_qp& qp) { any = any || qp.send_cq == cq || qp.recv_cq == cq; });
    return any;
  }
  [[nodiscard]] std::size_t size() const noexcept { return qps_.size(); }
  void swap(qp_registry& other) noexcept { qps_.swap(other.qps_); }

 private:
  /// ERR flushes the posted requests. In RESET nothing is posted, and the kernel has no transition
  /// from RESET to ERR.
  [[nodiscard]] static result<void> to_error(ibv_qp* qp) noexcept {
    if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR) return {};
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    return modify_qp_unchecked(qp, attributes, IBV_QP_STATE);
  }

  registry qps_;
};

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
