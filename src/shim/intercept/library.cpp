// The library as a whole: fork support, and names.
#include "device/fork.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

/// A name from the real library; "unknown" where it is not installed.
template <class Value>
[[nodiscard]] const char* name_of(const char* function, Value value) noexcept {
  const char* found = call_real<const char*>(function, value);
  return found ? found : "unknown";
}

}  // namespace

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

int ibv_fork_init() {
  return intercepted(verb::fork_init, exported{"ibv_fork_init"}, &device::fork_init);
}

ibv_fork_status ibv_is_fork_initialized() {
  return intercepted(verb::is_fork_initialized, exported{"ibv_is_fork_initialized"},
                     &device::is_fork_initialized);
}

// These take no object, so the real ones answer. They are defined here so that a program that looks
// up symbols of libibverbs among the shim's finds them.
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
