// Completion events and async events.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"
#include "device/completion_queue.hpp"
#include "device/context.hpp"

namespace ibvxx::shim {

struct sim_qp;
struct sim_srq;

/// Called when a completion enters the queue: raises the event if the queue is armed for it. Needs
/// the engine's lock.
void notify(sim_cq& cq, bool solicited);
/// Raises an event on the queue's channel, whether the queue is armed or not.
void raise_cq_event(sim_cq& cq);
/// Drops the queue's unread events, since it is destroyed.
void drop_events(sim_cq& cq);

/// Raises an async event on one context. Needs the engine's lock.
void raise_async_event(sim_context& context, const ibv_async_event& event);
/// Raises it on every open context of a device: events of ports and devices. Costs: linear in the
/// open contexts.
void raise_async_event(session_state& state, const sim_device& device,
                       const ibv_async_event& event);

/// Drops the unread async events that name an object, since it is destroyed.
void drop_async_events(sim_context& context, const void* object);

/// Raises an async event that names a queue pair or an SRQ, on its context.
void raise_qp_event(sim_qp& qp, ibv_event_type type);
void raise_srq_event(sim_srq& srq, ibv_event_type type);

namespace device {

int get_cq_event(call& c, ibv_comp_channel* channel, ibv_cq** cq, void** cq_context);
void ack_cq_events(call& c, ibv_cq* cq, unsigned events);
int get_async_event(call& c, ibv_context* context, ibv_async_event* event);
void ack_async_event(call& c, ibv_async_event* event);

}  // namespace device
}  // namespace ibvxx::shim
