#include "sim_events.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "sim_queue_pair.hpp"
#include "sim_work_queue.hpp"

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

/// The kind of object that an async event names; none for those of ports and devices.
[[nodiscard]] std::optional<object_kind> kind_named_by(ibv_event_type type) noexcept {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return object_kind::cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return object_kind::qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return object_kind::srq;
    case IBV_EVENT_WQ_FATAL:
      return object_kind::wq;
    default:
      return std::nullopt;
  }
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

void remove_device(session_state& state, sim_device& device) {
  device.lost = true;
  ibv_async_event event{};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  raise_async_event(state, device, event);
}

sim_device* device_called(session_state& state, const std::string& name) noexcept {
  for (const auto& device : state.devices)
    if (device->described.name == name) return device.get();
  return nullptr;
}

void drop_async_events(sim_context& context, const void* object) {
  // The pointers of an event share one place; a port's number is no pointer to anything.
  const auto names = [object](const ibv_async_event& event) {
    return kind_named_by(event.event_type) && event.element.qp == object;
  };
  auto& events = context.async_events;
  const auto kept = std::remove_if(events.begin(), events.end(), names);
  for (auto dropped = kept; dropped != events.end(); ++dropped)
    count_down(context.verbs.context.async_fd);
  events.erase(kept, events.end());
}

record* object_named_by(session_state& state, const ibv_async_event& event) noexcept {
  const auto kind = kind_named_by(event.event_type);
  record* object = kind ? state.objects.find(event.element.qp) : nullptr;
  return object && object->kind == *kind ? object : nullptr;
}

void wait_for_acks(call& c, const record& object, const event_balance& balance, const char* what) {
  const auto settled = [&balance] { return balance.read == balance.acknowledged; };
  if (settled() || c.wait(c.state().acknowledged, settled)) return;
  c.found(finding_kind::unacknowledged_events,
          object.title + ", " + origin(object) + ", was destroyed by call " +
              std::to_string(c.index()) + " with " + std::to_string(balance.read) + " " + what +
              " read and " + std::to_string(balance.acknowledged) +
              " acknowledged: libibverbs would wait for ever");
}

void wait_for_acks(call& c, const record& object) {
  wait_for_acks(c, object, object.completion_events, "completion events");
  wait_for_acks(c, object, object.async_events, "async events");
}

}  // namespace ibvxx::shim
