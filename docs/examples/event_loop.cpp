// One loop for all events of a context: completions of its queues, and events of its device. On a
// simulated device the port goes down and comes up again meanwhile.
//
// usage: event_loop [simulate]
//
// Without an RDMA device it uses the simulated one, too.
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ibvxx/format.hpp>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <ibvxx/shim.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "loopback.hpp"

using namespace ibvxx;

namespace {

/// The context's epoll descriptor holds its completion channels and its async descriptor, each with
/// itself as the registration's data. Everything there is non-blocking.
class event_loop {
 public:
  explicit event_loop(rdma_context& context) : context_(context) {}

  /// Waits for events and handles all of them. False if none came within `timeout`.
  bool run_once(std::chrono::milliseconds timeout) {
    std::array<epoll_event, 8> ready;
    const int count = ::epoll_wait(context_.epoll_fd(), ready.data(), ready.size(),
                                   static_cast<int>(timeout.count()));
    if (count < 0) {
      if (errno == EINTR) return true;
      throw exception(error(verb::epoll_wait, errno));
    }
    for (const epoll_event& event : std::span(ready.data(), static_cast<std::size_t>(count))) {
      const auto fd = static_cast<int>(event.data.u64);
      if (fd == context_.device()->async_fd)
        device_events();
      else
        completion_events(fd);
    }
    return count != 0;
  }

  [[nodiscard]] std::size_t received() const noexcept { return received_; }

 private:
  /// The context is paused when its port goes down, and resumed when it comes up.
  void device_events() {
    or_throw(context_.process_async_events([](const ibv_async_event& event) {
      fmt::print("{}\n", ibv_event_type_str(event.event_type));
    }));
    fmt::print("the context is {}\n", context_.state());
  }

  void completion_events(int fd) {
    cq_event_batch events;  // its destructor acknowledges what it has read
    for (std::size_t i = 0; i < context_.comp_channel_count(); ++i)
      if (context_.comp_channel(i)->fd == fd) or_throw(events.read(context_.comp_channel(i)));
    for (const auto& [cq, count] : events.pending()) {
      // Completions that arrived between the event and the arming raise no event: poll again.
      or_throw(req_notify_cq(cq));
      drain(cq);
    }
  }

  void drain(ibv_cq* cq) {
    std::array<ibv_wc, 16> completions;
    for (;;) {
      const std::size_t count = or_throw(poll_cq(cq, completions));
      for (const ibv_wc& completion : std::span(completions.data(), count)) {
        const completion_info& info = describe(completion.status);
        if (info.kind != completion_class::success)
          throw exception(error(verb::poll_cq, EIO).explain("%s: %s", info.name, info.advice));
        if ((completion.opcode & IBV_WC_RECV) != 0) ++received_;
      }
      if (count < completions.size()) return;
    }
  }

  rdma_context& context_;
  std::size_t received_ = 0;
};

void exchange(event_loop& loop, const loopback& pair, ibv_sge piece, std::size_t messages) {
  const std::size_t wanted = loop.received() + messages;
  for (std::size_t i = 0; i < messages; ++i) {
    post_receive(pair.b, i, piece);
    post_message(pair.a, i, piece);
  }
  while (loop.received() < wanted)
    if (!loop.run_once(std::chrono::seconds(5)))
      throw exception(error(verb::epoll_wait, ETIMEDOUT).explain("messages got lost"));
  fmt::print("{} messages\n", messages);
}

void run(bool simulate) {
  std::optional<shim::session> simulation;  // until it ends, the simulated device is the only one
  if (simulate) simulation.emplace();
  rdma_context context({.comp_channels = 2, .cqs = 2});
  if (auto enabled = context.enable(); !enabled) {
    fmt::print("no real device to use: {}\n", enabled.error());
    simulation.emplace();
    or_throw(context.enable());
  }
  fmt::print("on {}\n", context.device()->device->name);

  std::array<std::byte, 64> memory{};
  const ibv_mr* region =
      or_throw(context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE));
  const ibv_sge piece{reinterpret_cast<std::uint64_t>(memory.data()), memory.size(), region->lkey};
  const loopback pair = make_loopback(context, context.cq(1));
  event_loop loop(context);

  exchange(loop, pair, piece, 8);
  if (simulation) {
    simulation->set_port_state("sim0", context.port(), IBV_PORT_DOWN);
    loop.run_once(std::chrono::seconds(5));
    simulation->set_port_state("sim0", context.port(), IBV_PORT_ACTIVE);
    loop.run_once(std::chrono::seconds(5));
    exchange(loop, pair, piece, 8);
  }
  or_throw(context.reset());
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(count > 1 && arguments[1] == std::string_view("simulate"));
  } catch (const exception& failed) {
    fmt::print(stderr, "{}\n", failed.what());
    return 1;
  }
}
