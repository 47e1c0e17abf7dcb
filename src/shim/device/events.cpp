#include "device/events.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>

#include "core/acknowledgements.hpp"
#include "core/own_calls.hpp"
#include "device/device.hpp"
#include "device/queue_pair.hpp"
#include "device/receive.hpp"

namespace ibvxx::shim {
namespace {

/// Takes one count from a descriptor, waiting for it if the descriptor is a blocking one. The
/// engine's lock is released meanwhile, and the thread may be cancelled. False with errno where
/// there is none.
[[nodiscard]] bool take_count(call& c, int fd, event_readers& readers) {
  struct visit {
    event_readers& readers;
    int fd;
    explicit visit(event_readers& r, int descriptor) noexcept : readers(r), fd(descriptor) {
      ++readers.inside;
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() {
      if (--readers.inside != 0) return;
      for (; readers.surplus != 0; --readers.surplus) count_down(fd);
    }
  };
  const visit inside(readers, fd);
  std::uint64_t one = 0;
  ssize_t taken = 0;
  int code = 0;
  {
    const call::released waiting(c);
    taken = ::read(fd, &one, sizeof one);
    code = errno;
  }
  errno = code;
  return taken == sizeof one;
}

/// Waits for an event in a descriptor, whose count it takes. False with errno where there is none.
template <class Events>
[[nodiscard]] bool await_event(call& c, int fd, event_readers& readers, const Events& events) {
  while (take_count(c, fd, readers)) {
    if (!events.empty()) return true;
    // It was the count of an event that was dropped meanwhile.
    if (readers.surplus != 0) --readers.surplus;
  }
  return false;
}

/// Takes counts back, of events that are dropped.
void drop_counts(int fd, event_readers& readers, std::size_t dropped) noexcept {
  // A thread in take_count() may have taken the count already: it, or the last of them, makes up
  // for that. A read here could wait for ever.
  if (readers.inside != 0)
    readers.surplus += dropped;
  else
    for (; dropped != 0; --dropped) count_down(fd);
}

}  // namespace

void raise_cq_event(sim_cq& cq) {
  if (!cq.channel) return;
  cq.channel->events.push_back(&cq);
  count_up(cq.channel->verbs.fd);
}

void notify(sim_cq& cq, bool solicited) {
  if (!cq.armed || (cq.armed_solicited_only && !solicited)) return;
  cq.armed = false;
  raise_cq_event(cq);
}

void drop_events(sim_cq& cq) {
  if (!cq.channel) return;
  auto& events = cq.channel->events;
  const auto kept = std::remove(events.begin(), events.end(), &cq);
  drop_counts(cq.channel->verbs.fd, cq.channel->readers,
              static_cast<std::size_t>(events.end() - kept));
  events.erase(kept, events.end());
}

void raise_async_event(sim_context& context, const ibv_async_event& event) {
  context.async_events.push_back(event);
  count_up(context.verbs.context.async_fd);
}

void raise_async_event(session_state& state, const sim_device& device,
                       const ibv_async_event& event) {
  for (const record& object : state.objects.live_of(object_kind::context)) {
    auto& context = *static_cast<sim_context*>(object.storage.get());
    if (context.device.get() == &device) raise_async_event(context, event);
  }
}

void drop_async_events(sim_context& context, const void* object) {
  // An event's pointers are members of one union; an event of a port has a number there.
  const auto names = [object](const ibv_async_event& event) {
    return kind_named_by(event.event_type) && event.element.qp == object;
  };
  auto& events = context.async_events;
  const auto kept = std::remove_if(events.begin(), events.end(), names);
  drop_counts(context.verbs.context.async_fd, context.async_readers,
              static_cast<std::size_t>(events.end() - kept));
  events.erase(kept, events.end());
}

void raise_qp_event(sim_qp& qp, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = &qp.verbs;
  raise_async_event(*qp.context, event);
}

void raise_srq_event(sim_srq& srq, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.srq = &srq.verbs;
  raise_async_event(*srq.context, event);
}

namespace device {

int get_cq_event(call& c, ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  auto* events = c.use<sim_comp_channel>(channel);
  if (!events || c.failing() || !c.given(cq, "cq") || !c.given(cq_context, "cq_context"))
    return c.refuse_minus_one();
  // Another thread may destroy the channel meanwhile: its memory stays.
  const std::shared_ptr<void> kept = c.record_of(channel)->storage;
  if (!await_event(c, events->verbs.fd, events->readers, events->events)) return -1;
  sim_cq& named = *events->events.front();
  events->events.pop_front();
  ++c.record_of(&named.verbs)->completion_events.read;
  *cq = &named.verbs;
  *cq_context = named.verbs.cq_context;
  return 0;
}

void ack_cq_events(call& c, ibv_cq* cq, unsigned events) {
  if (!c.use<sim_cq>(cq)) return;
  record& queue = *c.record_of(cq);
  acknowledge(c, queue, queue.completion_events, events, "completion event");
}

int get_async_event(call& c, ibv_context* context, ibv_async_event* event) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(event, "event")) return c.refuse_minus_one();
  const std::shared_ptr<void> kept = c.record_of(context)->storage;
  if (!await_event(c, owner->verbs.context.async_fd, owner->async_readers, owner->async_events))
    return -1;
  *event = owner->async_events.front();
  owner->async_events.pop_front();
  count_read(c, *event);
  return 0;
}

void ack_async_event(call& c, ibv_async_event* event) {
  if (!c.given(event, "event")) return;
  // No destroy waits for an event of a port or a device.
  if (record* named = object_named_by(c.state(), *event))
    acknowledge(c, *named, named->async_events, 1, "async event");
}

}  // namespace device
}  // namespace ibvxx::shim
