// Events of the simulated machine: raising them, and what a destroy has to do with them.
#pragma once

#include <infiniband/verbs.h>

#include "engine.hpp"
#include "sim_objects.hpp"

namespace ibvxx::shim {

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

/// The device is gone: DEVICE_FATAL, and every later command fails.
void remove_device(session_state& state, sim_device& device);
/// The device of that name, or null.
[[nodiscard]] sim_device* device_called(session_state& state, const std::string& name) noexcept;

/// An async event that was not read yet is dropped when the object that it names is destroyed.
void drop_async_events(sim_context& context, const void* object);

/// At a destroy: waits until what was read is acknowledged, as libibverbs does, but not for ever: a
/// finding after the deadline.
void wait_for_acks(call& c, const record& object);

/// The object that an async event names, or null for events of ports and devices.
[[nodiscard]] record* object_named_by(session_state& state, const ibv_async_event& event) noexcept;

}  // namespace ibvxx::shim
