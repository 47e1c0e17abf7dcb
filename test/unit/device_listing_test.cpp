// The listing of devices, on simulated ones. Linked with the shim.
#include <algorithm>
#include <ibvxx/device_name.hpp>
#include <ibvxx/shim/session.hpp>
#include <ibvxx/shim/sweep.hpp>
#include <string>

#include "catch.hpp"

namespace ibvxx::device_listing_test {

namespace {

/// Two devices; the second has two ports, of which one is down and has no GID.
shim::simulated machine() {
  shim::device_description two;
  two.name = "sim1";
  two.ports.resize(2);
  two.ports[1].state = IBV_PORT_DOWN;
  two.ports[1].lid = 5;
  two.ports[1].gids.clear();
  return {{shim::device_description{}, two}};
}

}  // namespace

TEST_CASE("every device is listed with its ports and GIDs, and nothing stays open",
          "[device_listing]") {
  shim::session session(machine());
  const auto devices = describe_devices();
  REQUIRE(devices);
  REQUIRE(devices->size() == 2);
  const device_info& first = (*devices)[0];
  CHECK(first.name.view() == "sim0");
  CHECK_FALSE(first.failure);
  REQUIRE(first.ports.size() == 1);
  CHECK(to_text(first.ports[0]).view() ==
        "port 1: ACTIVE, Ethernet, MTU 1024, LID 0, 2 of 16 GIDs");
  const device_info& second = (*devices)[1];
  REQUIRE(second.ports.size() == 2);
  CHECK(second.ports[0].gids == 2);
  CHECK(to_text(second.ports[1]).view() == "port 2: DOWN, Ethernet, MTU 1024, LID 5, 0 of 16 GIDs");
  CHECK(session.live() == 0);
}

TEST_CASE("a device list that fails sets the number of devices to 0", "[device_listing]") {
  shim::session session(machine());
  session.fail(verb::get_device_list).with(ENOMEM);
  int count = 7;
  CHECK(::ibv_get_device_list(&count) == nullptr);
  CHECK(errno == ENOMEM);
  CHECK(count == 0);
  CHECK(session.finish().empty());
}

TEST_CASE("no device at all is an empty list", "[device_listing]") {
  shim::session session{shim::simulated{{}}};
  const auto devices = describe_devices();
  REQUIRE(devices);
  CHECK(devices->empty());
}

TEST_CASE("a device that cannot be opened is listed with its error", "[device_listing]") {
  shim::session session(machine());
  session.fail(verb::open_device).with(EACCES);
  const auto devices = describe_devices();
  REQUIRE(devices);
  REQUIRE(devices->size() == 2);
  CHECK((*devices)[0].name.view() == "sim0");
  REQUIRE((*devices)[0].failure);
  CHECK((*devices)[0].failure->call() == verb::open_device);
  CHECK((*devices)[0].failure->code() == EACCES);
  CHECK((*devices)[0].ports.empty());
  CHECK_FALSE((*devices)[1].failure);
  CHECK((*devices)[1].ports.size() == 2);
  CHECK(session.live() == 0);
}

TEST_CASE("a port that cannot be queried does not hide the others", "[device_listing]") {
  shim::session session(machine());
  session.fail(verb::query_port).nth(2).with(EIO);
  const auto devices = describe_devices();
  REQUIRE(devices);
  const auto& ports = (*devices)[1].ports;
  REQUIRE(ports.size() == 2);
  REQUIRE(ports[0].failure);
  CHECK(ports[0].failure->code() == EIO);
  CHECK_FALSE(ports[1].failure);
  CHECK(ports[1].attributes.state == IBV_PORT_DOWN);
  CHECK(ports[1].gids == port_info::unknown);
}

TEST_CASE("whichever call fails, the listing reports it and leaves nothing open",
          "[device_listing]") {
  const auto report = shim::sweep(
      [] {
        result<void> outcome;
        const auto keep = [&outcome](const error& e) {
          if (outcome) outcome = failure(e);
        };
        const auto devices = describe_devices();
        if (!devices) return result<void>(failure(devices.error()));
        for (const device_info& device : *devices) {
          if (device.failure) keep(*device.failure);
          for (const port_info& port : device.ports)
            if (port.failure) keep(*port.failure);
        }
        return outcome;
      },
      {.machine = machine()});
  INFO(report.text());
  CHECK(report.clean());
}

}  // namespace ibvxx::device_listing_test
