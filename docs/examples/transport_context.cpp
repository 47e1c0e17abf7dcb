// A transport with two NICs on a simulated machine: a start that fails half-way, a port that goes
// down, maintenance, a lost device, and a destroy that fails at the end.
#include "transport_context.hpp"

#include <cerrno>
#include <ibvxx/format.hpp>
#include <ibvxx/shim.hpp>
#include <string_view>

using namespace ibvxx;

namespace {

void show(transport& t, std::string_view what) {
  fmt::print("{:<32}", what);
  for (const rdma_context& nic : t.nics())
    fmt::print("  {} {:<9}", nic.config().device_name, nic.state());
  const auto next = t.next();
  if (next)
    fmt::print("  next: {}\n", (*next)->config().device_name);
  else
    fmt::print("  {}\n", next.error());
}

result<void> live(transport& t, shim::session& machine) {
  rdma_context& second = t.nics()[1];

  machine.fail(verb::create_cq).nth(8).with(ENOMEM);  // on the second NIC
  if (auto started = t.start(); !started) fmt::print("start: {}\n", started.error());
  show(t, "the second could not be opened");
  if (auto started = t.start(); !started) return started;
  show(t, "started again");

  machine.set_port_state("mlx5_0", 1, IBV_PORT_DOWN);
  if (auto followed = t.follow(); !followed) return followed;
  show(t, "a cable is pulled");
  if (auto paused = second.pause(); !paused) return paused;
  show(t, "the other is paused by hand");
  machine.set_port_state("mlx5_0", 1, IBV_PORT_ACTIVE);
  if (auto followed = t.follow(); !followed) return followed;
  show(t, "the cable is back");
  if (auto resumed = second.resume(); !resumed) return resumed;
  show(t, "the other is resumed");

  machine.unplug("mlx5_0");
  if (auto followed = t.follow(); !followed) return followed;
  show(t, "a device is gone");
  // Its destroys return EIO; the context gives it up, and its error says "device lost".
  if (auto recovered = t.recover(); !recovered) fmt::print("recover: {}\n", recovered.error());
  show(t, "it is given up");

  machine.fail(verb::dealloc_pd).with(EBUSY);
  if (auto stopped = second.reset(); !stopped) fmt::print("reset: {}\n", stopped.error());
  show(t, "a PD was not deallocated");
  if (auto stopped = t.stop(); !stopped) return stopped;
  show(t, "stopped");
  return {};
}

}  // namespace

int main() {
  shim::device_description first = shim::device_description::hardware("mlx5_0"),
                           second = shim::device_description::hardware("mlx5_1");
  shim::session machine(shim::simulated{{first, second}});
  {
    transport t({"mlx5_0", "mlx5_1"});
    if (auto lived = live(t, machine); !lived) {
      fmt::print(stderr, "{}\n", lived.error());
      return 1;
    }
  }
  const auto findings = machine.finish();
  for (const shim::finding& found : findings) fmt::print(stderr, "{}\n", found.text);
  return findings.empty() ? 0 : 1;
}
