// Completion events and async events.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"
#include "device/completion_queue.hpp"
#include "device/context.hpp"

namespace ibvxx::shim {

struct sim_qp;
struct sim_srq;

/// A completion arrived at the queue: raises its event if it was asked for. Needs the session's
/// lock.
void notify(sim_cq& cq, bool solicited);
/// An event for the queue's channel, asked for or not.
void raise_cq_event(sim_cq& cq);
/// An event that was not read yet is dropped when its queue is destroyed.
void drop_events(sim_cq& cq);

/// An async event for one context. Needs the session's lock.
void raise_async_event(sim_context& context, const ibv_async_event& event);
/// For every open context of a device: port and device events.
void raise_async_event(session_state& state, const sim_device& device,
                       const ibv_async_event& event);

/// An async event that was not read yet is dropped when the object that it names is destroyed.
void drop_async_events(sim_context& context, const void* object);

/// An async event of a queue pair or of an SRQ.
void raise_qp_event(sim_qp& qp, ibv_event_type type);
void raise_srq_event(sim_srq& srq, ibv_event_type type);

namespace device {

int get_cq_event(call& c, ibv_comp_channel* channel, ibv_cq** cq, void** cq_context);
void ack_cq_events(call& c, ibv_cq* cq, unsigned events);
int get_async_event(call& c, ibv_context* context, ibv_async_event* event);
void ack_async_event(call& c, ibv_async_event* event);

}  // namespace device
}  // namespace ibvxx::shim
