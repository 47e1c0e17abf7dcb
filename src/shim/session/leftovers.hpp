// Real objects that a run of a sweep has left alive.
#pragma once

namespace ibvxx::shim {

/// At the end of a forwarding run: destroys what is alive in the session's ledger, so that the next
/// run begins with the same state as this one. The run's injected failures kept these objects, and
/// the body has given up their handles.
void destroy_leftovers();

}  // namespace ibvxx::shim
