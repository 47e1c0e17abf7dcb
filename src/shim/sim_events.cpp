#include "sim_events.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>

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
  for (const record& object : state.objects.records()) {
    if (!object.live || object.kind != object_kind::context) continue;
    auto& context = *static_cast<sim_context*>(object.storage.get());
    if (context.device.get() == &device) raise_async_event(context, event);
  }
}

event_balance* balance_of(session_state& state, const ibv_async_event& event) noexcept {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR: {
      const record* object = state.objects.find(event.element.cq);
      return object ? &static_cast<sim_cq*>(object->storage.get())->async_events : nullptr;
    }
    default:
      return nullptr;
  }
}

void settle(call& c, const void* handle, const event_balance& balance, const char* what) {
  const auto settled = [&balance] { return balance.read == balance.acknowledged; };
  if (settled() || c.wait(c.state().acknowledged, settled)) return;
  const record& object = *c.record_of(handle);
  c.found(finding_kind::unacknowledged_events,
          object.title + ", " + origin(object) + ", was destroyed by call " +
              std::to_string(c.index()) + " with " + std::to_string(balance.read) + " " + what +
              " read and " + std::to_string(balance.acknowledged) +
              " acknowledged: libibverbs would wait for ever");
}

}  // namespace ibvxx::shim
