// The port goes down between open and query. Without exceptions and RTTI.
#include <cstdio>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/shim.hpp>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "this project is built without exceptions and RTTI"
#endif

namespace {

ibvxx::result<ibvxx::context_state> state_after_events(ibvxx::rdma_context& context) {
  auto events = context.process_async_events();
  if (!events) return ibvxx::failure(events.error());
  return context.state();
}

}  // namespace

int main() {
  ibvxx::shim::session s;
  auto context = ibvxx::rdma_context::open({.device_name = "sim0"});
  if (!context) return 1;
  s.set_port_state("sim0", 1, IBV_PORT_DOWN);
  const auto down = state_after_events(*context);
  s.set_port_state("sim0", 1, IBV_PORT_ACTIVE);
  const auto up = state_after_events(*context);
  if (!down || !up) return 1;
  std::printf("down: %s, up: %s\n", name(*down), name(*up));
  const bool followed =
      *down == ibvxx::context_state::paused && *up == ibvxx::context_state::enabled;
  const bool closed = context->reset().has_value();
  return followed && closed && s.finish().empty() ? 0 : 1;
}
