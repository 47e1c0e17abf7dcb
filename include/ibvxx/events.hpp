// Completion events and async events: every event that is read is acknowledged, also if an
// exception is thrown.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <ibvxx/handle.hpp>
#include <optional>
#include <span>
#include <utility>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// A completion event that was read. The destructor acknowledges it, since destroying its queue
/// waits without a limit for every event to be acknowledged. One thread at a time.
class [[nodiscard]] cq_event {
 public:
  /// Adopts an event that ibv_get_cq_event returned and that is not acknowledged yet.
  explicit cq_event(ibv_cq* cq, void* cq_context) noexcept : cq_(cq), context_(cq_context) {}
  cq_event(cq_event&& other) noexcept
      : cq_(std::exchange(other.cq_, nullptr)), context_(other.context_) {}
  cq_event& operator=(cq_event&& other) noexcept {
    if (this != &other) {
      acknowledge();
      cq_ = std::exchange(other.cq_, nullptr);
      context_ = other.context_;
    }
    return *this;
  }
  cq_event(const cq_event&) = delete;
  cq_event& operator=(const cq_event&) = delete;
  ~cq_event() { acknowledge(); }

  /// The queue that has completions; null once acknowledged.
  [[nodiscard]] ibv_cq* cq() const noexcept { return cq_; }
  /// The cq_context that the queue was created with.
  [[nodiscard]] void* cq_context() const noexcept { return context_; }

  /// Acknowledges now; later calls do nothing. Required before the queue is destroyed.
  void acknowledge() noexcept {
    if (ibv_cq* const cq = std::exchange(cq_, nullptr)) ::ibv_ack_cq_events(cq, 1);
  }

 private:
  ibv_cq* cq_;
  void* context_;
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Calls ibv_get_cq_event until it is not interrupted. False if a non-blocking channel has no
/// event.
[[nodiscard]] inline result<bool> read_cq_event(ibv_comp_channel* channel, ibv_cq*& cq,
                                                void*& cq_context) noexcept {
  for (;;) {
    errno = 0;
    if (::ibv_get_cq_event(channel, &cq, &cq_context) == 0) [[likely]]
      return true;
    const int code = errno;
    if (code == EINTR) continue;
    if (code == EAGAIN) return false;
    return failure(error(verb::get_cq_event, code).on(channel->context));
  }
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Reads one completion event. A non-blocking channel without an event gives an empty optional; a
/// blocking channel waits. An interrupted wait is continued.
[[nodiscard]] inline result<std::optional<cq_event>> get_cq_event(
    ref<ibv_comp_channel> channel) noexcept {
  if (!channel.get()) return detail::null_argument(verb::get_cq_event, "channel");
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  auto read = detail::read_cq_event(channel.get(), cq, cq_context);
  if (!read) return failure(read.error());
  if (!*read) return std::optional<cq_event>();
  return std::optional<cq_event>(std::in_place, cq, cq_context);
}

/// Completion events of any number of queues, acknowledged with one call for each queue, since each
/// call takes the lock of the queue. The destructor acknowledges everything that was read.
/// Allocates nothing. One thread at a time.
class [[nodiscard]] cq_event_batch {
 public:
  /// A queue, and the number of its events that were read and are not acknowledged yet.
  struct entry {
    ibv_cq* cq;
    unsigned events;
  };

  cq_event_batch() noexcept = default;
  cq_event_batch(const cq_event_batch&) = delete;
  cq_event_batch& operator=(const cq_event_batch&) = delete;
  ~cq_event_batch() { acknowledge(); }

  /// Reads every pending event, until EAGAIN, and returns their number; the channel must be
  /// non-blocking. `seen(cq)` is called for each. After an error the batch keeps the events that
  /// were read before.
  template <class Seen>
  [[nodiscard]] result<std::size_t> read(ref<ibv_comp_channel> channel, Seen&& seen) {
    if (!channel.get()) return detail::null_argument(verb::get_cq_event, "channel");
    for (std::size_t count = 0;; ++count) {
      ibv_cq* cq = nullptr;
      void* cq_context = nullptr;
      auto there = detail::read_cq_event(channel.get(), cq, cq_context);
      if (!there) return failure(there.error());
      if (!*there) return count;
      add(cq);
      seen(cq);
    }
  }
  [[nodiscard]] result<std::size_t> read(ref<ibv_comp_channel> channel) noexcept {
    return read(channel, [](ibv_cq*) {});
  }

  /// The queues with events that are not acknowledged, in the order of their first events.
  [[nodiscard]] std::span<const entry> pending() const noexcept { return {entries_.data(), used_}; }

  /// Acknowledges everything.
  void acknowledge() noexcept {
    for (std::size_t i = 0; i < used_; ++i) ::ibv_ack_cq_events(entries_[i].cq, entries_[i].events);
    used_ = 0;
  }
  /// Acknowledges the events of one queue: required before that queue is destroyed.
  void acknowledge(ref<ibv_cq> cq) noexcept {
    for (std::size_t i = 0; i < used_; ++i) {
      if (entries_[i].cq != cq.get()) continue;
      ::ibv_ack_cq_events(cq.get(), entries_[i].events);
      for (std::size_t next = i + 1; next < used_; ++next) entries_[next - 1] = entries_[next];
      --used_;
      return;
    }
  }

 private:
  void add(ibv_cq* cq) noexcept {
    for (std::size_t i = 0; i < used_; ++i) {
      if (entries_[i].cq != cq) continue;
      ++entries_[i].events;
      return;
    }
    if (used_ == entries_.size()) acknowledge();  // the array is full: acknowledge early
    entries_[used_++] = {cq, 1};
  }

  std::array<entry, 32> entries_{};
  std::size_t used_ = 0;
};

/// An async event that was read. The destructor acknowledges it, since destroying the CQ, QP, SRQ
/// or WQ that it names waits without a limit for that. One thread at a time.
class [[nodiscard]] async_event {
 public:
  /// Adopts an event that ibv_get_async_event returned and that is not acknowledged yet.
  explicit async_event(const ibv_async_event& read) noexcept : event_(read), pending_(true) {}
  async_event(async_event&& other) noexcept
      : event_(other.event_), pending_(std::exchange(other.pending_, false)) {}
  async_event& operator=(async_event&& other) noexcept {
    if (this != &other) {
      acknowledge();
      event_ = other.event_;
      pending_ = std::exchange(other.pending_, false);
    }
    return *this;
  }
  async_event(const async_event&) = delete;
  async_event& operator=(const async_event&) = delete;
  ~async_event() { acknowledge(); }

  [[nodiscard]] const ibv_async_event& get() const noexcept { return event_; }
  [[nodiscard]] const ibv_async_event* operator->() const noexcept { return &event_; }

  /// Acknowledges now; later calls do nothing. Required before the object is destroyed.
  void acknowledge() noexcept {
    if (std::exchange(pending_, false)) ::ibv_ack_async_event(&event_);
  }

 private:
  ibv_async_event event_;
  bool pending_;
};

/// Reads one async event. A non-blocking async descriptor without an event gives an empty optional;
/// otherwise the call waits. An interrupted wait is continued.
[[nodiscard]] inline result<std::optional<async_event>> get_async_event(
    ref<ibv_context> context) noexcept {
  if (!context.get()) return detail::null_argument(verb::get_async_event, "context");
  for (;;) {
    ibv_async_event event{};
    errno = 0;
    if (::ibv_get_async_event(context.get(), &event) == 0)
      return std::optional<async_event>(std::in_place, event);
    const int code = errno;
    if (code == EINTR) continue;
    if (code == EAGAIN) return std::optional<async_event>();
    return failure(error(verb::get_async_event, code).on(context.get()));
  }
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
