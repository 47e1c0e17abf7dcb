// The environment of the device: what differs between the kernel's machine and the simulation.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace conformance {

class environment {
 public:
  environment() = default;
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  virtual ~environment() = default;

  /// The device that the probes run on; it has one port, whose GID 1 is an IPv4 address.
  [[nodiscard]] virtual std::string device() const = 0;
  /// Takes the port's link away, or gives it back.
  virtual void set_port(bool up) = 0;
  /// Takes the address behind GID 1 away, or gives it back.
  virtual void set_address(bool present) = 0;

  /// How long something expected may take.
  [[nodiscard]] virtual std::chrono::milliseconds patience() const = 0;
  /// How long the other side of a request that has completed may take until it has settled.
  [[nodiscard]] virtual std::chrono::milliseconds settling() const = 0;
  /// How long nothing must happen until it counts as not happening.
  [[nodiscard]] virtual std::chrono::milliseconds silence() const = 0;
};

/// The environment that this program was linked with.
[[nodiscard]] std::unique_ptr<environment> make_environment();

}  // namespace conformance
