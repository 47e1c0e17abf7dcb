#include "core/acknowledgements.hpp"

#include <algorithm>
#include <string>

namespace ibvxx::shim {
namespace {

void wait_for(call& c, const record& object, const event_balance& balance, const char* what) {
  const auto balanced = [&balance] { return balance.read == balance.acknowledged; };
  if (balanced() || c.wait(c.state().acknowledged, balanced)) return;
  c.found(finding_kind::unacknowledged_events,
          object.title + ", " + origin(object) + ", was destroyed by call " +
              std::to_string(c.index()) + " with " + std::to_string(balance.read) + " " + what +
              " read and " + std::to_string(balance.acknowledged) +
              " acknowledged: libibverbs would wait for ever");
}

}  // namespace

std::optional<object_kind> kind_named_by(ibv_event_type type) noexcept {
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

record* object_named_by(session_state& state, const ibv_async_event& event) noexcept {
  const auto kind = kind_named_by(event.event_type);
  record* object = kind ? state.objects.find(event.element.qp) : nullptr;
  return object && object->kind == *kind ? object : nullptr;
}

void count_read(const call& c, const ibv_async_event& event) noexcept {
  record* named = c.is_seen() ? object_named_by(c.state(), event) : nullptr;
  if (named) ++named->async_events.read;
}

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

void wait_for_acks(call& c, const record& object) {
  wait_for(c, object, object.completion_events, "completion events");
  wait_for(c, object, object.async_events, "async events");
}

}  // namespace ibvxx::shim
