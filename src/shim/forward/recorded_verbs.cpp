#include "forward/recorded_verbs.hpp"

#include <algorithm>

#include "core/acknowledgements.hpp"
#include "core/freed_list.hpp"
#include "core/multicast_membership.hpp"
#include "forward/forwarding.hpp"

namespace ibvxx::shim::real {
namespace {

/// An event that acknowledges any async event of an object.
[[nodiscard]] ibv_async_event async_event_of(object_kind kind, void* handle) noexcept {
  ibv_async_event event{};
  event.element.qp = static_cast<ibv_qp*>(handle);
  event.event_type = kind == object_kind::cq    ? IBV_EVENT_CQ_ERR
                     : kind == object_kind::srq ? IBV_EVENT_SRQ_ERR
                     : kind == object_kind::wq  ? IBV_EVENT_WQ_FATAL
                                                : IBV_EVENT_QP_FATAL;
  return event;
}

/// Records that a region has moved to another protection domain.
void move_to(const call& c, const ibv_mr* mr, const ibv_pd* pd) {
  record* const moved = c.record_of(mr);
  record* const to = c.record_of(pd);
  if (!moved || !to) return;
  for (const parent_link& from : moved->parents) {
    if (from.parent->kind != object_kind::pd) continue;
    c.state().objects.adopt(*moved, *from.parent, *to);
    return;
  }
}

}  // namespace

ibv_device** get_device_list(call& c, int* num_devices) {
  // As libibverbs does, also where a rule fails the call before the real one is made.
  if (num_devices) *num_devices = 0;
  return forward<ibv_device**>(c, exported{"ibv_get_device_list"}, num_devices);
}

ibv_context* open_device(call& c, ibv_device* device) {
  find_freed_list(c, device);
  return forward<ibv_context*>(c, exported{"ibv_open_device"}, device);
}

int get_cq_event(call& c, ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  const int outcome = forward<int>(c, exported{"ibv_get_cq_event"}, channel, cq, cq_context);
  if (record* named = outcome == 0 && c.is_seen() ? c.record_of(*cq) : nullptr)
    ++named->completion_events.read;
  return outcome;
}

void ack_cq_events(call& c, ibv_cq* cq, unsigned events) {
  // Only as many acknowledgements as there are events reach the real library: one too many would
  // make the destroy wait for ever.
  record* const queue = c.is_seen() ? c.record_of(cq) : nullptr;
  if (queue && queue->live)
    events = acknowledge(c, *queue, queue->completion_events, events, "completion event");
  forward<void>(c, exported{"ibv_ack_cq_events"}, cq, events);
}

int get_async_event(call& c, ibv_context* context, ibv_async_event* event) {
  const int outcome = forward<int>(c, exported{"ibv_get_async_event"}, context, event);
  if (outcome == 0) count_read(c, *event);
  return outcome;
}

void ack_async_event(call& c, ibv_async_event* event) {
  if (c.is_seen() && !c.given(event, "event")) return;
  // No destroy waits for an event of a port or a device.
  record* const named = c.is_seen() ? object_named_by(c.state(), *event) : nullptr;
  if (!named || acknowledge(c, *named, named->async_events, 1, "async event") != 0)
    forward<void>(c, exported{"ibv_ack_async_event"}, event);
}

int attach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  const int code = forward<int>(c, exported{"ibv_attach_mcast"}, qp, gid, lid);
  if (code == 0 && c.is_seen() && !find_membership(c, qp, *gid, lid)) {
    const auto made = make_membership(qp, *gid, lid);
    index_membership(c, c.add(made, made.get(), qp->context->device->name, {c.record_of(qp)}));
  }
  return code;
}

int detach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  record* const ending = c.is_seen() && gid ? find_membership(c, qp, *gid, lid) : nullptr;
  if (ending && c.failing()) ending->destroy_injected = true;
  const int code = forward<int>(c, exported{"ibv_detach_mcast"}, qp, gid, lid);
  // Another thread may have ended it while the lock was released.
  record* const ended = ending && code == 0 ? find_membership(c, qp, *gid, lid) : nullptr;
  if (ended) c.retire(ended->handle);
  return code;
}

int rereg_mr(call& c, ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length,
             int access) {
  const int outcome =
      forward<int>(c, exported{"ibv_rereg_mr"}, mr, flags, pd, address, length, access);
  if (outcome == 0 && c.is_seen() && (flags & IBV_REREG_MR_CHANGE_PD) != 0) move_to(c, mr, pd);
  return outcome;
}

// Its object is its second argument.
int memcpy_from_dm(call& c, void* host, ibv_dm* dm, std::uint64_t offset, std::size_t length) {
  if (!admit(c)) return refusal<int>(c);
  return carry_out(c, find_operation(&object_operations::memcpy_from_dm, dm), host, dm, offset,
                   length);
}

int wr_complete(call& c, ibv_qp_ex* handle) {
  const record* own = c.is_seen() ? c.record_of(handle) : nullptr;
  // A provider holds its lock since ibv_wr_start; ibv_wr_abort releases it.
  if (c.failing() && (!own || own->live)) {
    const call::released running(c);
    original_operations(handle).wr_abort(handle);
  }
  return forward<int>(c, &object_operations::wr_complete, handle);
}

missing_acks take_missing_acks(record& object) noexcept {
  const auto take = [](event_balance& events) {
    const unsigned missing = events.read - std::min(events.read, events.acknowledged);
    events.acknowledged += missing;
    return missing;
  };
  return {const_cast<void*>(object.handle), object.kind, take(object.completion_events),
          take(object.async_events)};
}

void acknowledge(const missing_acks& missing) {
  if (missing.completion_events != 0)
    call_real<void>("ibv_ack_cq_events", static_cast<ibv_cq*>(missing.handle),
                    missing.completion_events);
  ibv_async_event event = async_event_of(missing.kind, missing.handle);
  for (unsigned i = 0; i < missing.async_events; ++i)
    call_real<void>("ibv_ack_async_event", &event);
}

}  // namespace ibvxx::shim::real
