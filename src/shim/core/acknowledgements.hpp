// Events that the program has read and must acknowledge, of simulated and of real objects.
#pragma once

#include <infiniband/verbs.h>

#include <optional>

#include "core/call.hpp"

namespace ibvxx::shim {

/// The kind of object that an async event names; none for events of ports and devices.
[[nodiscard]] std::optional<object_kind> kind_named_by(ibv_event_type type) noexcept;
/// The object that an async event names, or null.
[[nodiscard]] record* object_named_by(session_state& state, const ibv_async_event& event) noexcept;

/// Counts an async event that was read.
void count_read(const call& c, const ibv_async_event& event) noexcept;
/// Counts acknowledgements, and adds a finding if there are more than events read. Returns the
/// number of acknowledgements that match an event.
unsigned acknowledge(call& c, const record& object, event_balance& balance, unsigned events,
                     const char* what);

/// Called by a destroy: waits until every event that was read is acknowledged. libibverbs waits
/// without limit; this adds a finding at the session's deadline and returns.
void wait_for_acks(call& c, const record& object);

}  // namespace ibvxx::shim
