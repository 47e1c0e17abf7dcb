// Soft-RoCE in the kernel tier's machine: rxe0 over dummy0 (test/kernel/init).
#include <cstdio>
#include <cstdlib>

#include "environment.hpp"

namespace conformance {
namespace {

void run(const char* command) {
  if (std::system(command) == 0) return;
  std::fprintf(stderr, "conformance: %s failed\n", command);
  std::exit(3);
}

class kernel_environment final : public environment {
 public:
  std::string device() const override { return "rxe0"; }
  void set_port(bool up) override { run(up ? "ip link set dummy0 up" : "ip link set dummy0 down"); }
  void set_address(bool present) override {
    run(present ? "ip address add 192.0.2.1/24 dev dummy0"
                : "ip address del 192.0.2.1/24 dev dummy0");
  }
  // Emulated processors are slow, and the host may have others to serve.
  std::chrono::milliseconds patience() const override { return std::chrono::seconds(20); }
  std::chrono::milliseconds settling() const override { return std::chrono::milliseconds(60); }
  std::chrono::milliseconds silence() const override { return std::chrono::milliseconds(300); }
};

}  // namespace

std::unique_ptr<environment> make_environment() {
  return std::make_unique<kernel_environment>();
}

}  // namespace conformance
