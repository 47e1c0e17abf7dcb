// The objects that a context owns, and their release.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include <cstddef>
#include <ibvxx/completion.hpp>
#include <ibvxx/context_state.hpp>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/device.hpp>
#include <ibvxx/domain.hpp>
#include <ibvxx/fd.hpp>
#include <ibvxx/teardown.hpp>
#include <vector>

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Nothing outside the resources uses them.
struct no_users {
  [[nodiscard]] static bool of_cq(const ibv_cq*) noexcept { return false; }
  [[nodiscard]] static bool of_pd() noexcept { return false; }
};

/// True if the device of a context is gone. Called only after a destroy failed with EIO, which may
/// have other causes. Once the driver has released a device, every command on it fails with EIO
/// (ib_uverbs_cmd_verbs, Linux 6.1).
[[nodiscard]] inline bool device_is_gone(ibv_context* device) noexcept {
  const auto port = query_port(device, 1);
  return !port && port.error().code() == EIO;
}

/// The owners, in the order of construction; the member destructors release them in reverse. A set
/// that was built in part releases exactly what it owns; no other state is kept.
struct context_resources {
  unique_context device{};
  unique_pd pd{};
  unique_fd epoll{};
  std::vector<unique_comp_channel> channels{};
  std::vector<unique_cq> cqs{};
  unique_cq notification_cq{};

  context_resources() noexcept = default;
  context_resources(context_resources&&) noexcept = default;
  context_resources& operator=(context_resources&& other) noexcept {
    if (this != &other) {
      destroy_or_report(no_users{});
      swap(other);
    }
    return *this;
  }
  ~context_resources() { destroy_or_report(no_users{}); }

  void swap(context_resources& other) noexcept {
    device.swap(other.device);
    pd.swap(other.pd);
    epoll.swap(other.epoll);
    channels.swap(other.channels);
    cqs.swap(other.cqs);
    notification_cq.swap(other.notification_cq);
  }

  /// Destroys everything in the reverse order of construction. An object whose destroy fails stays
  /// owned, and so do the objects that it was created from. Each failure is passed to `failed`,
  /// which returns true to give the object up without destroying it. Objects that `users` reports
  /// in use are skipped.
  template <class Users, class Sink>
  void destroy(const Users& users, Sink&& failed) noexcept {
    const auto attempt = [&failed](auto& owner, const char* what, std::size_t index) {
      if (auto gone = owner.reset(); !gone) {
        error e = gone.error();
        if (failed(e.explain("%s%s %zu", e.detail().empty() ? "" : "; ", what, index)))
          let_go(owner.release());
      }
    };
    if (!users.of_cq(notification_cq.get())) attempt(notification_cq, "notification CQ", 0);
    for (std::size_t i = cqs.size(); i-- > 0;)
      if (!users.of_cq(cqs[i].get())) attempt(cqs[i], "CQ", i);
    for (std::size_t i = channels.size(); i-- > 0;)
      if (!has_cq(channels[i].get())) attempt(channels[i], "completion channel", i);
    attempt(epoll, "epoll", 0);
    if (!users.of_pd()) attempt(pd, "PD", 0);
    if (!has_children()) attempt(device, "device", 0);
  }

  /// The counts, without regions and queue pairs, which the registries own.
  [[nodiscard]] context_inventory inventory() const noexcept {
    const auto owned = [](const auto& owners) {
      std::size_t count = 0;
      for (const auto& owner : owners) count += owner ? 1U : 0U;
      return count;
    };
    context_inventory counts;
    counts.devices = device ? 1 : 0;
    counts.pds = pd ? 1 : 0;
    counts.epolls = epoll ? 1 : 0;
    counts.channels = owned(channels);
    counts.cqs = owned(cqs);
    counts.notification_cqs = notification_cq ? 1 : 0;
    return counts;
  }

  /// Passes a failed destroy to the teardown handler. True, to give the object up, if its device is
  /// gone: the device can be closed only without it.
  [[nodiscard]] bool report(const error& e) const noexcept {
    const bool gone = e.code() == EIO && device_is_gone(device.get());
    error told = e;
    if (gone) told.explain("; device lost");
    detail::report_teardown(told);
    return gone;
  }

  /// Destroys everything. Failures are passed to the teardown handler, and objects that could not
  /// be destroyed are given up alive, since others still depend on them. Keeps errno.
  template <class Users>
  void destroy_or_report(const Users& users) noexcept {
    const detail::errno_guard keep;
    destroy(users, [this](const error& e) { return report(e); });
    static_cast<void>(notification_cq.release());
    for (unique_cq& cq : cqs) static_cast<void>(cq.release());
    for (unique_comp_channel& channel : channels) static_cast<void>(channel.release());
    static_cast<void>(pd.release());
    static_cast<void>(device.release());
    cqs.clear();
    channels.clear();
  }

 private:
  static void let_go(const void*) noexcept {}
  static void let_go(int) noexcept {}
  /// A queue that cannot be destroyed keeps its reference to the channel: libibverbs drops it only
  /// if the verb succeeds (rdma-core 44, verbs.c). Dropped here, so that the channel can be
  /// destroyed and its descriptor closed.
  static void let_go(const ibv_cq* cq) noexcept {
    if (!cq->channel) return;
    ::pthread_mutex_lock(&cq->context->mutex);
    --cq->channel->refcnt;
    ::pthread_mutex_unlock(&cq->context->mutex);
  }

  [[nodiscard]] bool has_cq(const ibv_comp_channel* channel) const noexcept {
    if (notification_cq && notification_cq->channel == channel) return true;
    for (const unique_cq& cq : cqs)
      if (cq && cq->channel == channel) return true;
    return false;
  }

  [[nodiscard]] bool has_children() const noexcept {
    const context_inventory counts = inventory();
    return counts.notification_cqs + counts.pds + counts.cqs + counts.channels != 0;
  }
};

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
