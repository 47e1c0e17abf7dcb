// Completion events and async events: what is read is acknowledged, whatever happens.
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

/// A completion event that was read. It is acknowledged, to the queue that it names, when this
/// goes: destroying that queue would wait for it without end. One thread at a time.
class [[nodiscard]] cq_event {
 public:
  /// Adopts an event that ibv_get_cq_event returned and nobody acknowledged.
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

  /// Acknowledges now; later calls do nothing. Necessary before the queue is destroyed.
  void acknowledge() noexcept {
    if (ibv_cq* const cq = std::exchange(cq_, nullptr)) ::ibv_ack_cq_events(cq, 1);
  }

 private:
  ibv_cq* cq_;
  void* context_;
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// ibv_get_cq_event, interrupted or not. False where a non-blocking channel has nothing.
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

/// Reads one completion event. On a non-blocking channel an empty optional says that there is none;
/// on a blocking one the call waits. An interrupted wait goes on.
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

/// Completion events of any number of queues, acknowledged once a queue: cheaper, since each
/// acknowledgement takes the queue's lock. When this goes, nothing that it read is left
/// unacknowledged. It allocates nothing. One thread at a time.
class [[nodiscard]] cq_event_batch {
 public:
  /// A queue, and how many events of it were read and not yet acknowledged.
  struct entry {
    ibv_cq* cq;
    unsigned events;
  };

  cq_event_batch() noexcept = default;
  cq_event_batch(const cq_event_batch&) = delete;
  cq_event_batch& operator=(const cq_event_batch&) = delete;
  ~cq_event_batch() { acknowledge(); }

  /// Reads every event that is there, until EAGAIN, and returns how many; the channel must be
  /// non-blocking. `seen(cq)` is called with each. After an error, what was read before it is kept.
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

  /// The queues with events that are not acknowledged, in the order in which they came first.
  [[nodiscard]] std::span<const entry> pending() const noexcept { return {entries_.data(), used_}; }

  /// Acknowledges everything.
  void acknowledge() noexcept {
    for (std::size_t i = 0; i < used_; ++i) ::ibv_ack_cq_events(entries_[i].cq, entries_[i].events);
    used_ = 0;
  }
  /// Acknowledges the events of one queue: necessary before that queue is destroyed.
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
    if (used_ == entries_.size()) acknowledge();  // more queues than places: a round earlier
    entries_[used_++] = {cq, 1};
  }

  std::array<entry, 32> entries_{};
  std::size_t used_ = 0;
};

/// An async event that was read. It is acknowledged when this goes: destroying the CQ, QP, SRQ or
/// WQ that it names would wait for it without end. One thread at a time.
class [[nodiscard]] async_event {
 public:
  /// Adopts an event that ibv_get_async_event returned and nobody acknowledged.
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

  /// Acknowledges now; later calls do nothing. Necessary before the object is destroyed.
  void acknowledge() noexcept {
    if (std::exchange(pending_, false)) ::ibv_ack_async_event(&event_);
  }

 private:
  ibv_async_event event_;
  bool pending_;
};

/// Reads one async event. With a non-blocking async descriptor an empty optional says that there is
/// none; otherwise the call waits. An interrupted wait goes on.
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
