// The address of a queue pair: its byte form and its text form, and what both refuse.
#include <ibvxx/qp_address.hpp>
#include <string>

#include "catch.hpp"
#include "support/seed.hpp"

namespace ibvxx::qp_address_test {

namespace {

ibv_gid gid_of(const char* text) {
  ibv_gid gid{};
  REQUIRE(::inet_pton(AF_INET6, text, gid.raw) == 1);
  return gid;
}

qp_address sample() {
  return {0x11, 0x9af3c2, 7, gid_of("::ffff:10.0.0.1"), IBV_MTU_4096};
}

void refused(const result<qp_address>& outcome, std::string_view wanted) {
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code() == EINVAL);
  CHECK(outcome.error().detail() == wanted);
}

}  // namespace

TEST_CASE("the byte form is the documented one", "[qp_address]") {
  const auto bytes = sample().to_bytes();
  REQUIRE(bytes);
  const unsigned char wanted[28] = {1, 5, 0, 7, 0, 0, 0, 0x11, 0,    0x9a, 0xf3, 0xc2, 0, 0,
                                    0, 0, 0, 0, 0, 0, 0, 0,    0xff, 0xff, 10,   0,    0, 1};
  static_assert(sizeof wanted == qp_address::byte_count);
  CHECK(std::memcmp(bytes->data(), wanted, sizeof wanted) == 0);
  const auto back = qp_address::parse(*bytes);
  REQUIRE(back);
  CHECK(*back == sample());
}

TEST_CASE("the text form is the documented one", "[qp_address]") {
  const auto text = sample().to_text();
  REQUIRE(text);
  CHECK(text->view() == "0x000011:0x9af3c2:0x0007:4096:::ffff:10.0.0.1");
  const auto back = qp_address::parse(*text);
  REQUIRE(back);
  CHECK(*back == sample());
  // As docs/queue-pairs.md shows it.
  CHECK(qp_address{0x11, 0x9af3c2, 0, gid_of("::ffff:10.0.0.1"), IBV_MTU_1024}.to_text()->view() ==
        "0x000011:0x9af3c2:0x0000:1024:::ffff:10.0.0.1");
  // People type decimals.
  const auto typed = qp_address::parse("17:10154946:7:4096:::FFFF:10.0.0.1");
  REQUIRE(typed);
  CHECK(*typed == sample());
}

TEST_CASE("any address survives both forms", "[qp_address]") {
  std::mt19937 random(test::seed("qp_address round trip"));
  for (int round = 0; round < 20000; ++round) {
    qp_address address;
    address.qpn = round % 7 == 0 ? max_24_bit : random() & max_24_bit;
    address.psn = round % 11 == 0 ? 0 : random() & max_24_bit;
    address.lid = static_cast<std::uint16_t>(random());
    address.mtu = static_cast<ibv_mtu>(1 + random() % 5);
    for (auto& byte : address.gid.raw)
      byte = random() % 3 == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(random());
    const auto bytes = address.to_bytes();
    const auto text = address.to_text();
    if (!bytes || !text) FAIL("an address in range was refused");
    const auto from_bytes = qp_address::parse(*bytes);
    const auto from_text = qp_address::parse(*text);
    if (!from_bytes || !(*from_bytes == address) || !from_text || !(*from_text == address)) {
      INFO(text->c_str());
      FAIL("not the same after the round trip");
    }
  }
}

TEST_CASE("any bytes are either refused or converted back unchanged", "[qp_address]") {
  std::mt19937 random(test::seed("qp_address bytes"));
  int accepted = 0;
  for (int round = 0; round < 50000; ++round) {
    auto bytes = *sample().to_bytes();
    for (int changes = static_cast<int>(random() % 3); changes >= 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % (round % 2 ? 8 : 256));
    const auto address = qp_address::parse(bytes);
    if (!address) continue;
    ++accepted;
    const auto again = address->to_bytes();
    if (!again || *again != bytes) FAIL("the byte form is not the only one of its address");
  }
  CHECK(accepted > 1000);
}

TEST_CASE("bytes of another length, version or range are refused by name", "[qp_address]") {
  const auto good = *sample().to_bytes();
  refused(qp_address::parse(std::span(good).first(27)),
          "qp_address is 27 bytes long instead of 28");
  std::array<std::byte, 29> longer{};
  refused(qp_address::parse(longer), "qp_address is 29 bytes long instead of 28");
  const auto with = [&good](std::size_t offset, int value) {
    auto bytes = good;
    bytes[offset] = static_cast<std::byte>(value);
    return qp_address::parse(bytes);
  };
  refused(with(0, 0), "qp_address.version 0 is not 1");
  refused(with(0, 2), "qp_address.version 2 is not 1");
  refused(with(1, 0), "qp_address.mtu 0 is outside 1..5");
  refused(with(1, 255), "qp_address.mtu 255 is outside 1..5");
  refused(with(4, 1), "qp_address.qpn 16777233 is above 16777215");
  refused(with(8, 255), "qp_address.psn 4288345026 is above 16777215");
}

TEST_CASE("values out of range are refused when an address is written, too", "[qp_address]") {
  auto address = sample();
  address.qpn = max_24_bit + 1;
  CHECK(address.to_bytes().error().detail() == "qp_address.qpn 16777216 is above 16777215");
  CHECK(address.to_text().error().detail() == "qp_address.qpn 16777216 is above 16777215");
  address = sample();
  address.psn = 0xffffffff;
  CHECK(address.to_bytes().error().detail() == "qp_address.psn 4294967295 is above 16777215");
  address = sample();
  address.mtu = static_cast<ibv_mtu>(6);
  CHECK(address.to_text().error().detail() == "qp_address.mtu 6 is outside 1..5");
}

TEST_CASE("text that is not exactly an address is refused, naming the field", "[qp_address]") {
  const auto parse = [](std::string_view text) { return qp_address::parse(text); };
  CHECK(parse("1:2:3:1024:fe80::1"));
  refused(parse(""), "qp_address '' has no colon after qpn: qpn:psn:lid:mtu:gid is expected");
  refused(parse("1:2:3"),
          "qp_address '1:2:3' has no colon after lid: qpn:psn:lid:mtu:gid is expected");
  refused(parse("1:2:3:1024"),
          "qp_address '1:2:3:1024' has no colon after mtu: qpn:psn:lid:mtu:gid is expected");
  for (const char* qpn : {"+1", "-1", " 1", "1 ", "", "01", "0x", "1e2", "ten"})
    refused(parse(std::string(qpn) + ":2:3:1024:fe80::1"),
            "qp_address.qpn '" + std::string(qpn) +
                "' is not a number: decimal, or hexadecimal after 0x");
  refused(parse("16777216:2:3:1024:fe80::1"), "qp_address.qpn '16777216' is above 16777215");
  refused(parse("1:0x1000000:3:1024:fe80::1"), "qp_address.psn '0x1000000' is above 16777215");
  refused(parse("1:99999999999999999999:3:1024:fe80::1"),
          "qp_address.psn '99999999999999999999' is above 16777215");
  refused(parse("1:2:65536:1024:fe80::1"), "qp_address.lid '65536' is above 65535");
  for (const char* mtu : {"1000", "0", "5", "8192", "0x400", "1024 ", "01024", ""})
    refused(parse("1:2:3:" + std::string(mtu) + ":fe80::1"),
            "qp_address.mtu '" + std::string(mtu) + "' is none of 256, 512, 1024, 2048, 4096");
  for (const char* gid : {"", "fe80::1 ", " fe80::1", "fe80::1%eth0", "fe80::1/64", "10.0.0.1",
                          "fe80::g", "1:2:3:4:5:6:7:8:9", "fe80::1\n"})
    CHECK_FALSE(parse("1:2:3:1024:" + std::string(gid)));
  refused(parse("1:2:3:1024:fe80::1x"), "qp_address.gid 'fe80::1x' is not an IPv6 address");
  refused(parse(std::string_view("1:2:3:1024:fe80::1\0", 19)),
          "qp_address.gid 'fe80::1?' is not an IPv6 address");
  refused(parse("1:2:3:1024:" + std::string(1000, '0')),
          "qp_address.gid '00000000000000000000...' is not an IPv6 address");
}

TEST_CASE("the local address comes from the queue pair, its port and its GID", "[qp_address]") {
  ibv_qp qp{};
  qp.qp_num = 0x123;
  ibv_port_attr port{};
  port.lid = 9;
  port.active_mtu = IBV_MTU_2048;
  const auto address = local_address(&qp, 5, port, gid_of("fe80::1"));
  CHECK(address == qp_address{0x123, 5, 9, gid_of("fe80::1"), IBV_MTU_2048});
}

TEST_CASE("MTUs in bytes", "[qp_address]") {
  static_assert(mtu_bytes(IBV_MTU_256) == 256 && mtu_bytes(IBV_MTU_4096) == 4096);
  static_assert(mtu_bytes(static_cast<ibv_mtu>(0)) == 0 && mtu_bytes(static_cast<ibv_mtu>(6)) == 0);
}

}  // namespace ibvxx::qp_address_test
