// Choosing a GID by a policy, and the reasons given. That a context takes it is in
// cases/gid_cases.cpp.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <ibvxx/gid_policy.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/seed.hpp"

namespace ibvxx::gid_policy_test {

namespace {

enum : unsigned { eth0 = 2, eth1 = 3, docker0 = 4, nameless = 9 };

/// A machine with three network devices; errno is left in disorder, as if_indextoname may.
char* fake_namer(unsigned index, char* name) {
  constexpr const char* names[] = {nullptr, "lo", "eth0", "eth1", "docker0"};
  errno = ENXIO;
  return index < std::size(names) && names[index] ? std::strcpy(name, names[index]) : nullptr;
}

ibv_gid_entry slot(std::uint32_t index, const char* address, ibv_gid_type type, unsigned device,
                   std::uint32_t port = 1) {
  ibv_gid_entry entry{};
  REQUIRE(::inet_pton(AF_INET6, address, entry.gid.raw) == 1);
  entry.gid_index = index;
  entry.gid_type = type;
  entry.ndev_ifindex = device;
  entry.port_num = port;
  return entry;
}

constexpr auto v1 = IBV_GID_TYPE_ROCE_V1;
constexpr auto v2 = IBV_GID_TYPE_ROCE_V2;

std::vector<ibv_gid_entry> mixed_table() {
  return {slot(0, "fe80::1", v1, eth0),
          slot(1, "fe80::1", v2, eth0),
          slot(2, "::ffff:10.0.0.1", v1, eth0),
          slot(3, "::ffff:10.0.0.1", v2, eth0),
          slot(4, "fd00::1", v2, eth0),
          slot(5, "2001:db8::1", v2, 0),
          slot(6, "::ffff:172.17.0.1", v2, docker0),
          slot(7, "2001:db8::2", v1, 0)};
}

gid_candidate chosen(std::span<const ibv_gid_entry> entries, const gid_policy& policy = {},
                     bool infiniband = false, int port = 1) {
  errno = EXDEV;
  const auto choice = choose_gid(entries, port, infiniband, policy, fake_namer);
  CHECK(errno == EXDEV);
  if (!choice) FAIL(choice.error().message());
  CHECK(choice->rank == 0);
  return *choice;
}

std::vector<std::string> story(std::span<const ibv_gid_entry> entries, const gid_policy& policy) {
  const auto ranked = rank_gids(entries, 1, false, policy, fake_namer);
  REQUIRE(ranked);
  std::vector<std::string> lines;
  for (const gid_candidate& candidate : *ranked)
    lines.push_back(std::to_string(candidate.entry.gid_index) + " " + candidate.reason.c_str());
  return lines;
}

std::string refusal(const gid_policy& policy) {
  const auto choice = choose_gid(mixed_table(), 1, false, policy, fake_namer);
  const auto ranked = rank_gids(mixed_table(), 1, false, policy, fake_namer);
  if (choice) return "accepted";
  if (choice.error().code() == EINVAL) CHECK(ranked.error() == choice.error());
  return std::string(choice.error().detail());
}

/// Tables of every kind, shuffled: the order of the entries is not that of their indices.
std::vector<ibv_gid_entry> random_table(std::mt19937& random) {
  constexpr const char* addresses[] = {"::",      "fe80::1",         "fe80::a:b",  "fd00::1",
                                       "fc00::2", "::ffff:10.0.0.1", "2001:db8::1"};
  std::vector<ibv_gid_entry> table;
  const auto size = random() % 12;
  for (std::uint32_t index = 0; index < size; ++index)
    table.push_back(slot(index, addresses[random() % std::size(addresses)],
                         static_cast<ibv_gid_type>(random() % 3),
                         random() % 2 ? static_cast<unsigned>(random() % 10) : 0,
                         1 + static_cast<std::uint32_t>(random() % 2)));
  std::shuffle(table.begin(), table.end(), random);
  return table;
}

}  // namespace

TEST_CASE("without wishes: link-local last, then RoCE v2, then a device, then the index",
          "[gid_policy]") {
  std::mt19937 random(test::seed("gid_policy default"));
  const auto wish = [](const ibv_gid_entry& entry, bool infiniband) {
    int rank = 0;
    if (!infiniband) {
      if (family(entry.gid) == gid_family::link_local) rank += 4;
      if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) rank += 2;
      if (entry.ndev_ifindex == 0) rank += 1;
    }
    return std::pair<int, std::uint32_t>(rank, entry.gid_index);
  };
  int found = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto table = random_table(random);
    const bool infiniband = random() % 4 == 0;
    const ibv_gid_entry* wanted = nullptr;
    for (const ibv_gid_entry& entry : table) {
      if (entry.port_num != 1 || family(entry.gid) == gid_family::none) continue;
      if (!wanted || wish(entry, infiniband) < wish(*wanted, infiniband)) wanted = &entry;
    }
    const auto choice = choose_gid(table, 1, infiniband, gid_policy{}, fake_namer);
    if ((wanted != nullptr) != choice.has_value()) FAIL("one of the two found nothing");
    if (!wanted) continue;
    ++found;
    if (std::memcmp(wanted, &choice->entry, sizeof *wanted) != 0)
      FAIL("chosen " << choice->entry.gid_index << ", wanted " << wanted->gid_index);
  }
  CHECK(found > 10000);
}

TEST_CASE("the list begins with the choice, is in order, and has every entry of the port once",
          "[gid_policy]") {
  std::mt19937 random(test::seed("gid_policy list"));
  const std::vector<std::string> excluded = {"docker*", "lo"};
  for (int round = 0; round < 5000; ++round) {
    const auto table = random_table(random);
    gid_policy policy;
    const auto rank = [&random] {
      const auto dice = static_cast<std::uint8_t>(random() % 4);
      return dice == 3 ? gid_policy::refused : dice;
    };
    policy.types = {rank(), rank(), rank()};
    policy.families = {rank(), rank(), rank(), rank()};
    policy.network_device = static_cast<network_device_need>(random() % 3);
    if (random() % 2) policy.excluded_devices = excluded;

    const auto ranked = rank_gids(table, 1, false, policy, fake_namer);
    REQUIRE(ranked.has_value());
    const auto wanted = std::count_if(table.begin(), table.end(), [](const ibv_gid_entry& e) {
      return e.port_num == 1 && family(e.gid) != gid_family::none;
    });
    if (ranked->size() != static_cast<std::size_t>(wanted)) FAIL("entries lost or added");
    int next = 0;
    for (std::size_t i = 0; i < ranked->size(); ++i) {
      const gid_candidate& c = (*ranked)[i];
      if (c.usable() ? c.rank != next++ : i + 1 < ranked->size() && (*ranked)[i + 1].usable())
        FAIL("ranks out of order");
      if (c.reason.empty()) FAIL("no reason given");
      if (c.usable() == c.reason.view().starts_with("refused")) FAIL(c.reason.c_str());
      if (i > 0 && c.usable() && c.ranks < (*ranked)[i - 1].ranks) FAIL("a worse one came first");
    }
    const auto choice = choose_gid(table, 1, false, policy, fake_namer);
    if (choice.has_value() != (!ranked->empty() && ranked->front().usable()))
      FAIL("the choice and the list disagree");
    if (choice && (choice->entry.gid_index != ranked->front().entry.gid_index ||
                   !(choice->reason == ranked->front().reason)))
      FAIL("the choice is not the first of the list");
  }
}

TEST_CASE("v2 with a local device first, link-local last, ties by index, wherever they stand",
          "[gid_policy]") {
  auto table = mixed_table();
  std::mt19937 random(test::seed("case 30"));
  for (int round = 0; round < 200; ++round) {
    std::shuffle(table.begin(), table.end(), random);
    CHECK(chosen(table).entry.gid_index == 3);
  }
  CHECK(story(table, {}) ==
        std::vector<std::string>{
            "3 chosen: IPv4-mapped RoCE v2 on eth0", "4 behind index 3 by index",
            "6 behind index 3 by index", "5 behind index 3 by network device: none",
            "2 behind index 3 by type: RoCE v1", "7 behind index 3 by type: RoCE v1",
            "1 behind index 3 by family: link-local", "0 behind index 3 by family: link-local"});
}

TEST_CASE("256 slots of which 0 to 5 are empty: the first usable one is found", "[gid_policy]") {
  // As ibv_query_gid leaves them: all zero. (ibv_query_gid_table leaves them out altogether.)
  std::vector<ibv_gid_entry> table;
  for (std::uint32_t index = 0; index < 256; ++index) table.push_back(slot(index, "::", v1, 0));
  const auto empty = choose_gid(table, 1, false, gid_policy{}, fake_namer);
  REQUIRE_FALSE(empty);
  CHECK(empty.error().code() == ENODATA);
  CHECK(empty.error().detail() == "no usable GID: port 1 has no entry");
  CHECK(rank_gids(table, 1, false).value().empty());

  table[6] = slot(6, "::ffff:10.0.0.1", v1, eth0);
  table[7] = slot(7, "::ffff:10.0.0.1", v2, eth0);
  CHECK(chosen(table).entry.gid_index == 7);
  CHECK(chosen(std::span(table).subspan(6, 2)).entry.gid_index == 7);
  CHECK(rank_gids(table, 1, false).value().size() == 2);
  CHECK_FALSE(choose_gid(table, 2, false, gid_policy{}, fake_namer));
}

TEST_CASE("on InfiniBand the index decides, and only there", "[gid_policy]") {
  const std::vector<ibv_gid_entry> table = {slot(1, "2001:db8::1", IBV_GID_TYPE_IB, 0),
                                            slot(0, "fe80::1", IBV_GID_TYPE_IB, 0)};
  const auto choice = chosen(table, {.network_device = network_device_need::required}, true);
  CHECK(choice.entry.gid_index == 0);
  CHECK(choice.reason.view() == "chosen: first entry of an InfiniBand port");
  CHECK(chosen(table).entry.gid_index == 1);
}

TEST_CASE("families are preferred and refused as the policy says", "[gid_policy]") {
  const auto table = mixed_table();
  CHECK(chosen(table, {.families = {.global = 1, .unique_local = 0, .ipv4_mapped = 1}})
            .entry.gid_index == 4);
  CHECK(chosen(table, {.families = {.global = gid_policy::refused,
                                    .unique_local = 2,
                                    .ipv4_mapped = gid_policy::refused,
                                    .link_local = 0}})
            .entry.gid_index == 1);
}

TEST_CASE("types are preferred and refused as the policy says", "[gid_policy]") {
  const auto table = mixed_table();
  CHECK(chosen(table, {.types = {.roce_v2 = 1, .roce_v1 = 0}}).entry.gid_index == 2);
  CHECK(chosen(table, {.types = {.roce_v2 = gid_policy::refused}}).reason.view() ==
        "chosen: IPv4-mapped RoCE v1 on eth0");
}

TEST_CASE("the family counts before the type, and the type before the network device",
          "[gid_policy]") {
  const std::vector<ibv_gid_entry> table = {slot(0, "::ffff:10.0.0.1", v1, eth0),
                                            slot(1, "fe80::1", v2, eth0),
                                            slot(2, "::ffff:10.0.0.2", v2, 0)};
  CHECK(story(table, {}) ==
        std::vector<std::string>{"2 chosen: IPv4-mapped RoCE v2 on no network device",
                                 "0 behind index 2 by type: RoCE v1",
                                 "1 behind index 2 by family: link-local"});
}

TEST_CASE("a network device can be needed, preferred or neither", "[gid_policy]") {
  const std::vector<ibv_gid_entry> table = {slot(0, "2001:db8::1", v2, 0),
                                            slot(1, "2001:db8::2", v2, eth1)};
  CHECK(chosen(table).entry.gid_index == 1);
  CHECK(chosen(table, {.network_device = network_device_need::indifferent}).reason.view() ==
        "chosen: global RoCE v2 on no network device");
  CHECK(story(table, {.network_device = network_device_need::required}) ==
        std::vector<std::string>{"1 chosen: global RoCE v2 on eth1",
                                 "0 refused: network device none"});
}

TEST_CASE("network devices are excluded by name or by prefix", "[gid_policy]") {
  const auto table = mixed_table();
  // Neither is a whole name here.
  CHECK(chosen(table, {.excluded_devices = {"docker", "eth"}}).entry.gid_index == 3);
  CHECK(chosen(table, {.excluded_devices = {"eth*"}}).device.view() == "docker0");
  const auto lines = story(table, {.excluded_devices = {"eth0", "docker*"}});
  CHECK(lines.front() == "5 chosen: global RoCE v2 on no network device");
  CHECK(lines[2] == "0 refused: network device eth0 matches eth0");
  CHECK(lines.back() == "6 refused: network device docker0 matches docker*");
  CHECK(chosen(table, {.excluded_devices = {"*"}}).entry.ndev_ifindex == 0);
}

TEST_CASE("a network device of another namespace has a number but no name", "[gid_policy]") {
  const std::vector<ibv_gid_entry> table = {slot(0, "2001:db8::1", v2, nameless)};
  const auto choice =
      chosen(table, {.network_device = network_device_need::required, .excluded_devices = {"*"}});
  CHECK(choice.device.empty());
  CHECK(choice.reason.view() == "chosen: global RoCE v2 on interface 9");
}

TEST_CASE("where everything is ruled out, the error counts and gives a reason", "[gid_policy]") {
  CHECK(refusal({.types = {gid_policy::refused, gid_policy::refused, gid_policy::refused}}) ==
        "no usable GID: all 8 of port 1 refused; index 0 refused: type RoCE v1");
}

TEST_CASE("a policy that means nothing is refused by field", "[gid_policy]") {
  CHECK(refusal({.network_device = static_cast<network_device_need>(3)}) ==
        "gid_policy.network_device is not a network_device_need");
  CHECK(refusal({.excluded_devices = {"eth0", ""}}) == "gid_policy.excluded_devices[1] is empty");
}

TEST_CASE("too little room is refused with the room that is needed", "[gid_policy]") {
  gid_candidate room[7];
  const auto short_of = rank_gids(mixed_table(), 1, false, {}, room, fake_namer);
  REQUIRE_FALSE(short_of);
  CHECK(short_of.error().code() == EINVAL);
  CHECK(short_of.error().detail() == "room for 7 candidates, 8 needed");
  gid_candidate enough[9];
  CHECK(rank_gids(mixed_table(), 1, false, {}, enough, fake_namer).value() == 8);
}

TEST_CASE("the system's own names are used where no other namer is given", "[gid_policy]") {
  const unsigned loopback = ::if_nametoindex("lo");
  if (loopback == 0) return;  // a network namespace without one
  const std::vector<ibv_gid_entry> table = {slot(0, "::ffff:127.0.0.1", v2, loopback)};
  CHECK(choose_gid(table, 1, false, gid_policy{}).value().device.view() == "lo");
}

}  // namespace ibvxx::gid_policy_test
