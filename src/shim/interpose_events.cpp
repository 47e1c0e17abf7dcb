// Reading and acknowledging completion events and async events.
#include <unistd.h>

#include <algorithm>
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

void count_read(const call& c, const ibv_async_event& event) noexcept {
  record* named = c.is_seen() ? object_named_by(c.state(), event) : nullptr;
  if (named) ++named->async_events.read;
}

/// Counts acknowledgements, and returns how many of them there was an event for.
unsigned acknowledge(call& c, const record& object, event_balance& balance, unsigned events,
                     const char* what) {
  const unsigned due = balance.read - std::min(balance.read, balance.acknowledged);
  balance.acknowledged += events;
  if (balance.acknowledged > balance.read)
    c.found(finding_kind::over_acknowledged_events,
            object.title + ", " + origin(object) + ": call " + std::to_string(c.index()) +
                " acknowledged " + what + " number " + std::to_string(balance.acknowledged) +
                ", but only " + std::to_string(balance.read) +
                " were read: its destroy would wait for ever",
            &object);
  c.state().acknowledged.notify_all();
  return std::min(due, events);
}

}  // namespace

extern "C" {

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  call c(verb::get_cq_event, channel);
  if (c.forwarded()) {
    const int outcome = forward<int>(c, "ibv_get_cq_event", channel, cq, cq_context);
    if (record* named = outcome == 0 && c.is_seen() ? c.record_of(*cq) : nullptr)
      ++named->completion_events.read;
    return outcome;
  }
  auto* events = c.use<sim_comp_channel>(channel);
  if (!events || c.failing() || !c.given(cq, "cq") || !c.given(cq_context, "cq_context"))
    return c.refuse_minus_one();
  do {
    if (!take_count(c, events->verbs.fd)) return -1;
  } while (events->events.empty());  // its queue was destroyed meanwhile
  sim_cq& named = *events->events.front();
  events->events.pop_front();
  ++c.record_of(&named.verbs)->completion_events.read;
  *cq = &named.verbs;
  *cq_context = named.verbs.cq_context;
  return 0;
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned events) {
  call c(verb::ack_cq_events, cq);
  record* queue = c.is_seen() ? c.record_of(cq) : nullptr;
  if (c.forwarded()) {
    // The real ones do not get to see one too many: the destroy would wait for ever.
    if (queue && queue->live)
      events = acknowledge(c, *queue, queue->completion_events, events, "completion event");
    forward<void>(c, "ibv_ack_cq_events", cq, events);
  } else if (c.use<sim_cq>(cq)) {
    acknowledge(c, *queue, queue->completion_events, events, "completion event");
  }
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  call c(verb::get_async_event, context);
  if (c.forwarded()) {
    const int outcome = forward<int>(c, "ibv_get_async_event", context, event);
    if (outcome == 0) count_read(c, *event);
    return outcome;
  }
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(event, "event")) return c.refuse_minus_one();
  do {
    if (!take_count(c, owner->verbs.context.async_fd)) return -1;
  } while (owner->async_events.empty());
  *event = owner->async_events.front();
  owner->async_events.pop_front();
  count_read(c, *event);
  return 0;
}

void ibv_ack_async_event(ibv_async_event* event) {
  call c(verb::ack_async_event, nullptr);
  if (c.is_seen() && !c.given(event, "event")) return;
  // Nothing waits for an event of a port or a device.
  record* named = c.is_seen() ? object_named_by(c.state(), *event) : nullptr;
  const bool due = !named || acknowledge(c, *named, named->async_events, 1, "async event") != 0;
  if (c.forwarded() && due) forward<void>(c, "ibv_ack_async_event", event);
}

}  // extern "C"
