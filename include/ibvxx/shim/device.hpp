// What a simulated machine looks like.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ibvxx::shim {

/// One slot of a GID table; the default is an empty slot.
struct gid_slot {
  ibv_gid gid{};
  ibv_gid_type type = IBV_GID_TYPE_ROCE_V2;
  std::uint32_t ndev_ifindex = 0;  ///< the network device it belongs to; 0: none
};

/// A GID from its text form, for example "fe80::1" or "::ffff:10.0.0.1". Throws
/// std::invalid_argument.
[[nodiscard]] ibv_gid gid(std::string_view text);

/// A port. The default is an active RoCE port with a link-local and an IPv4-mapped GID, as
/// Soft-RoCE shows one.
struct port_description {
  ibv_port_state state = IBV_PORT_ACTIVE;
  ibv_mtu max_mtu = IBV_MTU_4096;
  ibv_mtu active_mtu = IBV_MTU_1024;
  std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  std::uint16_t lid = 0;
  int gid_table_size = 16;
  std::vector<gid_slot> gids = default_gids();  ///< by index; what is beyond is empty

  [[nodiscard]] static std::vector<gid_slot> default_gids();
};

/// A device. `limits` is what ibv_query_device answers, and what creation is checked against;
/// `phys_port_cnt` in it follows `ports`. The default has Soft-RoCE's limits (measured, Linux 6.1).
struct device_description {
  std::string name = "sim0";
  std::vector<port_description> ports = {port_description{}};
  int completion_vectors = 4;
  ibv_device_attr limits = default_limits();

  [[nodiscard]] static ibv_device_attr default_limits();
};

/// A machine made of described devices.
struct simulated {
  std::vector<device_description> devices = {device_description{}};
};

}  // namespace ibvxx::shim
