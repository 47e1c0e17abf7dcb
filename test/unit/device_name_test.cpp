// The usual notation for a device and a port, and the lines of a listing.
#include <ibvxx/device_name.hpp>
#include <string>

#include "catch.hpp"
#include "support/seed.hpp"

namespace ibvxx::device_name_test {

namespace {

std::string refusal(std::string_view text) {
  const auto parsed = device_port::parse(text);
  if (parsed) return "accepted";
  CHECK(parsed.error().code() == EINVAL);
  return std::string(parsed.error().detail());
}

}  // namespace

TEST_CASE("a device with and without a port is read and written back", "[device_name]") {
  const auto bare = device_port::parse("mlx5_0");
  REQUIRE(bare);
  CHECK(bare->device.view() == "mlx5_0");
  CHECK(bare->port == 0);
  CHECK(bare->text().view() == "mlx5_0");
  const auto with = device_port::parse("rocep65s0f1:255");
  REQUIRE(with);
  CHECK(with->device.view() == "rocep65s0f1");
  CHECK(with->port == 255);
  CHECK(with->text().view() == "rocep65s0f1:255");
  CHECK_FALSE(*bare == *with);
  const std::string longest(63, 'd');
  CHECK(device_port::parse(longest + ":1").value().text().view() == longest + ":1");
}

TEST_CASE("anything but exactly that notation is refused, naming the part", "[device_name]") {
  CHECK(refusal("") == "the device name is empty");
  CHECK(refusal(":1") == "the device name is empty");
  CHECK(refusal(std::string(64, 'd')) ==
        "the device name 'dddddddddddddddddddd...' has 64 characters: at most 63");
  for (const char* name :
       {" mlx5_0", "mlx5_0 ", "mlx5 0", "mlx5_0\n", "../mlx5_0", "mlx\x7f", "ml\xc3\xa4"})
    CHECK(refusal(name) == "the device name '" + std::string(detail::quotable(name).view()) +
                               "' has a character that is not allowed");
  CHECK(refusal(std::string_view("mlx5_0\0", 7)) ==
        "the device name 'mlx5_0?' has a character that is not allowed");
  for (const char* port : {"", "0", "256", "01", "+1", "-1", " 1", "1 ", "1x", "0x1", "1:1", "one",
                           "4294967297", "18446744073709551617"})
    CHECK(refusal("mlx5_0:" + std::string(port)) ==
          "the port '" + std::string(port) + "' of device mlx5_0 is not a number in 1..255");
}

TEST_CASE("any text is refused or converted back unchanged", "[device_name]") {
  std::mt19937 random(test::seed("device_name"));
  constexpr std::string_view alphabet = "mlx5_0:12 /9";
  int accepted = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string text;
    for (auto length = random() % 10; length > 0; --length)
      text += alphabet[random() % alphabet.size()];
    const auto parsed = device_port::parse(text);
    if (!parsed) continue;
    ++accepted;
    if (parsed->text().view() != text) FAIL(text << " became " << parsed->text().c_str());
  }
  CHECK(accepted > 1000);
}

TEST_CASE("the lines of a listing", "[device_name]") {
  port_info port;
  port.number = 2;
  port.attributes.state = IBV_PORT_ACTIVE;
  port.attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.attributes.active_mtu = IBV_MTU_1024;
  port.attributes.gid_tbl_len = 16;
  port.gids = 3;
  CHECK(to_text(port).view() == "port 2: ACTIVE, Ethernet, MTU 1024, LID 0, 3 of 16 GIDs");
  port.gids = port_info::unknown;
  CHECK(to_text(port).view() == "port 2: ACTIVE, Ethernet, MTU 1024, LID 0, 16 GID slots");
  port.failure = error(verb::query_port, EIO).on("mlx5_0").explain("port 2");
  CHECK(to_text(port).view() ==
        "port 2: ibv_query_port on mlx5_0: Input/output error (EIO): port 2");

  device_info device;
  device.name = device_name_text("mlx5_0");
  device.node_guid = 0x0c42a10300abcdef;
  CHECK(to_text(device).view() == "mlx5_0, node GUID 0c42:a103:00ab:cdef");
  device.failure = error(verb::open_device, EACCES).on("mlx5_0");
  CHECK(to_text(device).view() ==
        "mlx5_0, node GUID 0c42:a103:00ab:cdef: ibv_open_device on mlx5_0: Permission denied "
        "(EACCES)");
  CHECK(link_layer_name(IBV_LINK_LAYER_INFINIBAND) == std::string("InfiniBand"));
  CHECK(link_layer_name(IBV_LINK_LAYER_UNSPECIFIED) == std::string("unspecified"));
  CHECK(link_layer_name(77) == std::string("?"));
}

}  // namespace ibvxx::device_name_test
