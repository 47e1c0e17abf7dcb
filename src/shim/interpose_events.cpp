// Reading and acknowledging completion events and async events.
#include <unistd.h>

#include <string>

#include "interpose.hpp"
#include "sim_events.hpp"

using namespace ibvxx;
using namespace ibvxx::shim;

namespace {

/// Takes one count from a descriptor, waiting for it if the descriptor is a blocking one. The
/// session goes on meanwhile. False with errno where there is none.
[[nodiscard]] bool take_count(call& c, int fd) noexcept {
  std::uint64_t one = 0;
  c.unlock();
  const ssize_t taken = ::read(fd, &one, sizeof one);
  const int code = errno;
  c.lock();
  errno = code;
  return taken == sizeof one;
}

void over_acknowledged(call& c, const void* handle, const event_balance& balance,
                       const char* what) {
  const record& object = *c.record_of(handle);
  c.found(finding_kind::over_acknowledged_events,
          object.title + ", " + origin(object) + ": call " + std::to_string(c.index()) +
              " acknowledged " + what + " number " + std::to_string(balance.acknowledged) +
              ", but only " + std::to_string(balance.read) +
              " were read: its destroy would wait for ever",
          &object);
}

}  // namespace

extern "C" {

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  call c(verb::get_cq_event, channel);
  if (c.forwarded()) return forward<int>("ibv_get_cq_event", channel, cq, cq_context);
  auto* events = c.use<sim_comp_channel>(channel);
  if (!events || c.failing() || !c.given(cq, "cq") || !c.given(cq_context, "cq_context"))
    return c.refuse_minus_one();
  do {
    if (!take_count(c, events->verbs.fd)) return -1;
  } while (events->events.empty());  // its queue was destroyed meanwhile
  sim_cq& named = *events->events.front();
  events->events.pop_front();
  ++named.completion_events.read;
  *cq = &named.verbs;
  *cq_context = named.verbs.cq_context;
  return 0;
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned events) {
  call c(verb::ack_cq_events, cq);
  if (c.forwarded()) return forward<void>("ibv_ack_cq_events", cq, events);
  auto* queue = c.use<sim_cq>(cq);
  if (!queue) return;
  event_balance& balance = queue->completion_events;
  balance.acknowledged += events;
  if (balance.acknowledged > balance.read) over_acknowledged(c, cq, balance, "completion event");
  c.state().acknowledged.notify_all();
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  call c(verb::get_async_event, context);
  if (c.forwarded()) return forward<int>("ibv_get_async_event", context, event);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(event, "event")) return c.refuse_minus_one();
  do {
    if (!take_count(c, owner->verbs.context.async_fd)) return -1;
  } while (owner->async_events.empty());
  *event = owner->async_events.front();
  owner->async_events.pop_front();
  if (event_balance* balance = balance_of(c.state(), *event)) ++balance->read;
  return 0;
}

void ibv_ack_async_event(ibv_async_event* event) {
  call c(verb::ack_async_event, nullptr);
  if (c.forwarded()) return forward<void>("ibv_ack_async_event", event);
  if (!c.given(event, "event")) return;
  event_balance* balance = balance_of(c.state(), *event);
  if (!balance) return;  // of a port or a device: nothing waits for it
  ++balance->acknowledged;
  if (balance->acknowledged > balance->read)
    over_acknowledged(c, event->element.cq, *balance, "async event");
  c.state().acknowledged.notify_all();
}

}  // extern "C"
