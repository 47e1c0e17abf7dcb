// Reading GIDs and choosing one.
#include "suite.hpp"

namespace ibvxx::gid_test {

namespace {

ibv_gid_entry entry(const char* text, ibv_gid_type type, unsigned ndev, unsigned index,
                    unsigned port = 1) {
  ibv_gid_entry made{};
  made.gid = shim::gid(text);
  made.gid_type = type;
  made.ndev_ifindex = ndev;
  made.gid_index = index;
  made.port_num = port;
  return made;
}

}  // namespace

TEST_CASE("a GID's family follows from its bytes") {
  CHECK(family(shim::gid("::")) == gid_family::none);
  CHECK(family(shim::gid("fe80::1")) == gid_family::link_local);
  CHECK(family(shim::gid("febf::1")) == gid_family::link_local);
  CHECK(family(shim::gid("fec0::1")) == gid_family::global);
  CHECK(family(shim::gid("fd00::1")) == gid_family::unique_local);
  CHECK(family(shim::gid("::ffff:10.0.0.1")) == gid_family::ipv4_mapped);
  CHECK(family(shim::gid("2001:db8::1")) == gid_family::global);
  CHECK(family(shim::gid("::1")) == gid_family::global);
}

TEST_CASE(
    "the choice is RoCE v2 on a device first and link-local last, whatever the order of the "
    "table") {
  std::vector<ibv_gid_entry> best_first = {
      entry("::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V2, 2, 9),
      entry("fd00::1", IBV_GID_TYPE_ROCE_V2, 0, 8),
      entry("2001:db8::1", IBV_GID_TYPE_ROCE_V1, 2, 7),
      entry("::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V1, 0, 6),
      entry("fe80::1", IBV_GID_TYPE_ROCE_V2, 2, 5),
      entry("fe80::1", IBV_GID_TYPE_ROCE_V2, 0, 4),
      entry("fe80::1", IBV_GID_TYPE_ROCE_V1, 2, 3),
      entry("fe80::1", IBV_GID_TYPE_ROCE_V1, 0, 2),
  };
  while (!best_first.empty()) {
    const unsigned expected = best_first.front().gid_index;
    auto table = best_first;
    std::sort(table.begin(), table.end(),
              [](const auto& a, const auto& b) { return a.gid_index < b.gid_index; });
    for (std::size_t turn = 0; turn < table.size(); ++turn) {
      std::rotate(table.begin(), table.begin() + 1, table.end());
      const auto chosen = choose_gid(table, 1, false);
      REQUIRE(chosen);
      CHECK(chosen->entry.gid_index == expected);
      CHECK_FALSE(chosen->reason.empty());
    }
    best_first.erase(best_first.begin());
  }
}

TEST_CASE("among equals the lowest index is chosen; other ports and empty slots do not count") {
  const std::vector<ibv_gid_entry> table = {
      entry("::ffff:10.0.0.3", IBV_GID_TYPE_ROCE_V2, 2, 3),
      entry("::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V2, 2, 1),
      entry("::ffff:10.0.1.1", IBV_GID_TYPE_ROCE_V2, 2, 0, 2),
      entry("::", IBV_GID_TYPE_ROCE_V2, 2, 0),
  };
  CHECK(choose_gid(table, 1, false)->entry.gid_index == 1);
  CHECK(choose_gid(table, 2, false)->entry.port_num == 2);
  CHECK_FALSE(choose_gid(table, 3, false));
}

TEST_CASE("on InfiniBand the first entry is taken") {
  const std::vector<ibv_gid_entry> table = {entry("fe80::1", IBV_GID_TYPE_IB, 0, 0),
                                            entry("2001:db8::1", IBV_GID_TYPE_IB, 0, 1)};
  CHECK(choose_gid(table, 1, true)->entry.gid_index == 0);
}

TEST_CASE(
    "256 slots of which 0 to 5 are empty, 6 is v1 and 7 is v2: 7 is chosen; all empty: no usable "
    "GID") {
  shim::port_description port;
  port.gid_table_size = 256;
  port.gids.assign(8, {});
  port.gids[6] = {shim::gid("::ffff:10.0.0.1"), IBV_GID_TYPE_ROCE_V1, 2};
  port.gids[7] = {shim::gid("::ffff:10.0.0.1"), IBV_GID_TYPE_ROCE_V2, 2};
  {
    shim::session s({{{.ports = {port}}}});
    auto context = rdma_context::open({});
    REQUIRE(context);
    CHECK(context->gid().entry.gid_index == 7);
    CHECK(query_gid_ex(context->device(), 1, 3).error().code() == ENODATA);
    CHECK(query_gid_ex(context->device(), 1, 256).error().code() == EINVAL);
    CHECK(query_gid_ex(context->device(), 1, 7)->gid_index == 7);
    CHECK(context->reset());
    CHECK(s.finish().empty());
  }
  port.gids.clear();
  shim::session s({{{.ports = {port}}}});
  auto context = rdma_context::open({});
  REQUIRE_FALSE(context);
  CHECK(context.error().message() ==
        "ibv_query_gid_table on sim0: No data available (ENODATA): no usable GID: port 1 has no "
        "entry");
  CHECK(s.live() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("query_gid_table with too little room is EINVAL") {
  shim::session s;
  auto context = or_throw(open_device((*get_device_list())[0]));
  std::vector<ibv_gid_entry> room(1);
  CHECK(query_gid_table(context, room).error().code() == EINVAL);
  room.resize(2);
  CHECK(query_gid_table(context, room).value() == 2);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("a device without a single GID slot has no GID, and that is no error") {
  // As an mlx5 representor.
  shim::session s({{{.ports = {{.gid_table_size = 0, .gids = {}}}}}});
  const auto devices = or_throw(describe_devices());
  REQUIRE(devices.size() == 1);
  CHECK_FALSE(devices[0].failure);
  CHECK(devices[0].ports[0].gids == 0);
  const auto refused = rdma_context::open({});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ENODATA);
  CHECK(s.calls(verb::query_gid_table) == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("a GID table query without room is EINVAL, even for an empty table") {
  shim::session s({{{.ports = {{.gid_table_size = 0, .gids = {}}}}}});
  auto context = or_throw(open_device((*get_device_list())[0]));
  CHECK(query_gid_table(context, {}).error().code() == EINVAL);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::gid_test
