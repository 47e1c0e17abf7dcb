#include "device/events.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "core/acknowledgements.hpp"
#include "device/device.hpp"
#include "device/queue_pair.hpp"
#include "device/receive.hpp"

namespace ibvxx::shim {
namespace {

void count_up(int fd) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

void count_down(int fd) noexcept {
  std::uint64_t one = 0;
  [[maybe_unused]] const ssize_t taken = ::read(fd, &one, sizeof one);
}

/// Takes one count from a descriptor, waiting for it if the descriptor is a blocking one. The
/// engine's lock is released meanwhile. False with errno where there is none.
[[nodiscard]] bool take_count(call& c, int fd) noexcept {
  std::uint64_t one = 0;
  c.unlock();
  const ssize_t taken = ::read(fd, &one, sizeof one);
  const int code = errno;
  c.lock();
  errno = code;
  return taken == sizeof one;
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
  for (auto dropped = kept; dropped != events.end(); ++dropped) count_down(cq.channel->verbs.fd);
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
  for (auto dropped = kept; dropped != events.end(); ++dropped)
    count_down(context.verbs.context.async_fd);
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

void ack_cq_events(call& c, ibv_cq* cq, unsigned events) {
  if (!c.use<sim_cq>(cq)) return;
  record& queue = *c.record_of(cq);
  acknowledge(c, queue, queue.completion_events, events, "completion event");
}

int get_async_event(call& c, ibv_context* context, ibv_async_event* event) {
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

void ack_async_event(call& c, ibv_async_event* event) {
  if (!c.given(event, "event")) return;
  // No destroy waits for an event of a port or a device.
  if (record* named = object_named_by(c.state(), *event))
    acknowledge(c, *named, named->async_events, 1, "async event");
}

}  // namespace device
}  // namespace ibvxx::shim
