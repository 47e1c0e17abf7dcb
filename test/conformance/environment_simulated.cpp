// The simulated device, described as the kernel tier's machine shows rxe0.
#include <cstdio>
#include <ibvxx/shim/session.hpp>

#include "environment.hpp"

namespace conformance {
namespace {

using namespace ibvxx;

shim::device_description described(const char* name, const char* link_local, const char* address) {
  shim::device_description device;
  device.name = name;
  device.completion_vectors = 2;  // one per processor
  device.ports.front().gid_table_size = 1024;
  device.ports.front().gids = {{shim::gid(link_local), IBV_GID_TYPE_ROCE_V2, 2},
                               {shim::gid(address), IBV_GID_TYPE_ROCE_V2, 2}};
  return device;
}

class simulated_environment final : public environment {
 public:
  // The probes do on purpose what the session complains about.
  ~simulated_environment() override {
    std::fprintf(stderr, "conformance: %zu findings\n", session_.finish().size());
  }
  std::string device() const override { return "rxe0"; }
  void set_port(bool up) override {
    session_.set_port_state("rxe0", 1, up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
  }
  void set_address(bool present) override {
    session_.set_gid("rxe0", 1, 1,
                     present ? machine_.devices[0].ports[0].gids[1] : shim::gid_slot{});
  }
  std::chrono::milliseconds patience() const override { return std::chrono::seconds(2); }
  std::chrono::milliseconds settling() const override { return std::chrono::milliseconds(1); }
  std::chrono::milliseconds silence() const override { return std::chrono::milliseconds(5); }

 private:
  shim::simulated machine_{{described("rxe0", "fe80::ff:fe00:0", "::ffff:192.0.2.1"),
                            described("rxe1", "fe80::ff:fe00:1", "::ffff:198.51.100.1")}};
  shim::session session_{machine_};
};

}  // namespace

std::unique_ptr<environment> make_environment() {
  return std::make_unique<simulated_environment>();
}

}  // namespace conformance
