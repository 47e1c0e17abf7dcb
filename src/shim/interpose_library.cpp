// What concerns the library as a whole: fork support, and names.
#include "interpose.hpp"

#undef ibv_get_device_list

using namespace ibvxx;
using namespace ibvxx::shim;

namespace {

/// A name from the real library; without one there are no names.
template <class Value>
[[nodiscard]] const char* name_of(const char* function, Value value) noexcept {
  const char* found = call_real<const char*>(function, value);
  return found ? found : "unknown";
}

}  // namespace

extern "C" {

// libibverbs marks pages only as they are registered: after the first registration it is too late
// to begin (rdma-core 44, memory.c; measured).
int ibv_fork_init() {
  call c(verb::fork_init, nullptr);
  if (c.forwarded()) return forward<int>(c, "ibv_fork_init");
  if (c.failing()) return c.refuse_code();
  if (c.state().fork_ready) return 0;
  if (c.state().registered) return EINVAL;
  c.state().fork_ready = true;
  return 0;
}

// As on kernels that copy pinned pages at fork (measured on Linux 6.1).
ibv_fork_status ibv_is_fork_initialized() {
  call c(verb::is_fork_initialized, nullptr);
  if (c.forwarded()) return forward<ibv_fork_status>(c, "ibv_is_fork_initialized");
  return IBV_FORK_UNNEEDED;
}

// These take no object, so the real ones serve. They are defined all the same, so that whoever
// looks for a symbol of libibverbs among the shim's finds it.
const char* ibv_node_type_str(ibv_node_type type) {
  return name_of("ibv_node_type_str", type);
}
const char* ibv_port_state_str(ibv_port_state state) {
  return name_of("ibv_port_state_str", state);
}
const char* ibv_event_type_str(ibv_event_type type) {
  return name_of("ibv_event_type_str", type);
}
const char* ibv_wc_status_str(ibv_wc_status status) {
  return name_of("ibv_wc_status_str", status);
}
int ibv_rate_to_mult(ibv_rate rate) {
  return call_real<int>("ibv_rate_to_mult", rate);
}
ibv_rate mult_to_ibv_rate(int mult) {
  return call_real<ibv_rate>("mult_to_ibv_rate", mult);
}
int ibv_rate_to_mbps(ibv_rate rate) {
  return call_real<int>("ibv_rate_to_mbps", rate);
}
ibv_rate mbps_to_ibv_rate(int mbps) {
  return call_real<ibv_rate>("mbps_to_ibv_rate", mbps);
}

}  // extern "C"
