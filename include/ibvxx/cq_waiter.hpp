// Waiting for completions: arm, poll again, sleep, in the order that loses no completion.
#pragma once

#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ibvxx/completion.hpp>
#include <ibvxx/events.hpp>
#include <ibvxx/fd.hpp>
#include <span>
#include <vector>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Waits for completions on any number of queues of one channel.
///
/// A completion that arrives between the last empty poll and the arming raises no event. So every
/// queue is polled again after it was armed, before the thread sleeps. All events of the channel
/// are read, and acknowledged once for each queue; events of a queue that the waiter does not have
/// are lost. The notification CQ of an rdma_context is on its first channel.
///
/// One thread waits at a time; stop() may be called from any thread. The channel and the queues
/// must outlive the waiter, and no other thread may read the events of the channel meanwhile.
class cq_waiter {
 public:
  enum class outcome : std::uint8_t { completions, timeout, stopped };
  struct wait_result {
    outcome what = outcome::timeout;
    std::size_t queue = 0;  ///< index of the queue that the completions come from
    std::size_t count = 0;  ///< how many were written
  };
  /// For wait(): no timeout.
  static constexpr std::chrono::milliseconds forever{-1};

  /// Creates a waiter for `cqs`, all of which must have been created on `channel` (EINVAL, naming
  /// the index). Makes the channel non-blocking. Allocates here, never in wait().
  [[nodiscard]] static result<cq_waiter> create(ref<ibv_comp_channel> channel,
                                                std::span<ibv_cq* const> cqs) noexcept {
    if (!channel.get()) return detail::null_argument(verb::get_cq_event, "channel");
    error wrong(verb::req_notify_cq, EINVAL);
    wrong.on(channel->context);
    if (cqs.empty()) return failure(wrong.explain("cqs is empty"));
    for (std::size_t i = 0; i < cqs.size(); ++i)
      if (!cqs[i] || cqs[i]->channel != channel.get())
        return failure(wrong.explain("cqs[%zu] is %s", i, cqs[i] ? "on another channel" : "null"));
    return detail::catching_bad_alloc([&]() -> result<cq_waiter> {
      cq_waiter made;
      made.channel_ = channel.get();
      for (ibv_cq* cq : cqs) made.queues_.push_back({cq, false});
      if (auto done = set_nonblocking(channel->fd); !done) return failure(done.error());
      made.stop_ = unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!made.stop_) return failure(error(verb::eventfd, errno));
      return made;
    });
  }

  /// Returns up to `completions.size()` completions of one queue as soon as there are any; or
  /// reports that the time is over or stop() was called. The queues are polled in rotation.
  /// `timeout` is in milliseconds; 0 polls once, after arming.
  [[nodiscard]] result<wait_result> wait(std::span<ibv_wc> completions,
                                         std::chrono::milliseconds timeout = forever) noexcept {
    if (completions.empty())
      return failure(
          error(verb::poll_cq, EINVAL).on(channel_->context).explain("completions is empty"));
    // The clock is read only if no completion is ready.
    if (auto found = poll_all(completions); !found || found->what != outcome::timeout) return found;
    const auto began = std::chrono::steady_clock::now();
    for (;;) {
      auto armed = arm_all();
      if (!armed) return failure(armed.error());
      if (*armed) {
        if (auto found = poll_all(completions); !found || found->what != outcome::timeout)
          return found;
      }
      int milliseconds = -1;
      if (timeout >= std::chrono::milliseconds::zero()) {
        // Whole milliseconds, rounded down: in a finer unit the longest timeouts would overflow.
        const auto elapsed =
            std::chrono::floor<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
        const auto left = (timeout - elapsed).count();
        milliseconds = left <= 0 ? 0 : left < INT_MAX ? static_cast<int>(left) : INT_MAX;
      }
      auto woken = sleep(milliseconds);
      if (!woken) return failure(woken.error());
      if (*woken == wake::stopped) return wait_result{outcome::stopped, 0, 0};
      if (*woken == wake::nothing && milliseconds == 0) return wait_result{};
      if (auto found = poll_all(completions); !found || found->what != outcome::timeout)
        return found;
    }
  }

  /// Makes the wait in progress, and every later one that finds no completions, return `stopped`.
  /// Safe from any thread and from a signal handler.
  void stop() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  }
  /// Cancels stop(): later waits sleep again.
  void restart() noexcept {
    std::uint64_t taken = 0;
    [[maybe_unused]] const ssize_t read = ::read(stop_.get(), &taken, sizeof taken);
  }

 private:
  struct queue {
    ibv_cq* cq;
    bool armed;  // its event is requested and not read yet
  };
  enum class wake : std::uint8_t { nothing, events, stopped };

  cq_waiter() noexcept = default;

  [[nodiscard]] result<wait_result> poll_all(std::span<ibv_wc> completions) noexcept {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const std::size_t index = next_;
      next_ = next_ + 1 < queues_.size() ? next_ + 1 : 0;
      auto taken = poll_cq(queues_[index].cq, completions);
      if (!taken) return failure(taken.error());
      if (*taken != 0) return wait_result{outcome::completions, index, *taken};
    }
    return wait_result{};
  }

  /// True if at least one queue was armed.
  [[nodiscard]] result<bool> arm_all() noexcept {
    bool any = false;
    for (queue& one : queues_) {
      if (one.armed) continue;
      if (auto armed = req_notify_cq(one.cq); !armed) return failure(armed.error());
      one.armed = any = true;
    }
    return any;
  }

  [[nodiscard]] result<wake> sleep(int milliseconds) noexcept {
    pollfd watched[2] = {{channel_->fd, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    const int ready = ::poll(watched, 2, milliseconds);
    if (ready < 0) {
      if (errno == EINTR) return wake::events;  // poll again, with the remaining time
      return failure(error(verb::poll, errno).on(channel_->context));
    }
    if (watched[1].revents != 0) return wake::stopped;
    if (watched[0].revents == 0) return wake::nothing;
    cq_event_batch events;
    auto read = events.read(channel_, [this](const ibv_cq* cq) {
      for (queue& one : queues_)
        if (one.cq == cq) one.armed = false;
    });
    if (!read) return failure(read.error());
    return wake::events;
  }

  ibv_comp_channel* channel_ = nullptr;
  std::vector<queue> queues_;
  std::size_t next_ = 0;
  unique_fd stop_;
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
