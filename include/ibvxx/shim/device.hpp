// The description of a simulated machine.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <ibvxx/shim/device_behaviour.hpp>
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

/// A port. The default is an active RoCE port with a link-local and an IPv4-mapped GID, like that
/// of Soft-RoCE.
struct port_description {
  ibv_port_state state = IBV_PORT_ACTIVE;
  ibv_mtu max_mtu = IBV_MTU_4096;
  ibv_mtu active_mtu = IBV_MTU_1024;
  std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  std::uint16_t lid = 0;
  int gid_table_size = 16;
  std::vector<gid_slot> gids = default_gids();  ///< by index; the other slots are empty

  [[nodiscard]] static std::vector<gid_slot> default_gids();
};

/// The optional features of a device. A verb that needs a feature that is off fails with
/// EOPNOTSUPP. The defaults are those of Soft-RoCE (measured, Linux 6.1 and rdma-core 44).
struct device_features {
  bool thread_domains = false;
  bool parent_domains = false;
  bool xrc = false;  ///< XRC domains, queue pairs and SRQs
  bool memory_windows = true;
  bool device_memory = false;
  bool null_regions = false;    ///< ibv_alloc_null_mr
  bool dmabuf_regions = false;  ///< ibv_reg_dmabuf_mr; data is not carried to or from such memory
  bool on_demand_paging = false;
  bool reregistration = false;  ///< ibv_rereg_mr
  bool advice = false;          ///< ibv_advise_mr
  bool imports = false;         ///< ibv_import_device, _pd, _mr, _dm
  bool extended_cqs = true;
  bool completion_details = false;  ///< extended CQs with time stamps, VLAN, flow tag, tag matching
  bool cq_moderation = false;       ///< ibv_modify_cq
  bool extended_qps = true;
  bool qp_create_flags = false;  ///< ibv_qp_init_attr_ex::create_flags other than 0
  bool raw_packets = false;      ///< RAW_PACKET queue pairs; they carry no data here
  bool tag_matching = false;     ///< SRQs of type TM; tags are stored, not matched
  bool work_queues = false;      ///< work queues and indirection tables
  bool flows = false;
  bool flow_actions = false;
  bool counters = false;
  bool real_time_values = false;  ///< ibv_query_rt_values_ex
  bool rate_limits = false;
  bool connection_options = false;  ///< ibv_query_ece, ibv_set_ece

  /// Every feature.
  [[nodiscard]] static device_features all();
};

/// A device. ibv_query_device returns `limits`, and creation is checked against them;
/// `phys_port_cnt` in it is set from `ports`. The default has the limits of Soft-RoCE (measured,
/// Linux 6.1).
struct device_description {
  std::string name = "sim0";
  std::vector<port_description> ports = {port_description{}};
  int completion_vectors = 4;
  ibv_device_attr limits = default_limits();
  device_features features{};
  device_behaviour behaviour = device_behaviour::soft_roce();
  std::uint32_t max_inline_data = 512;  ///< bytes of inline data that a queue pair may ask for
  std::uint64_t max_dm_size = 0;        ///< bytes of device memory

  [[nodiscard]] static ibv_device_attr default_limits();
  /// A device with every feature and the behaviour of hardware (device_behaviour::hardware()).
  [[nodiscard]] static device_description hardware(std::string name = "sim0");
};

/// A machine with simulated devices.
struct simulated {
  std::vector<device_description> devices = {device_description{}};
};

/// The real devices of this machine: `session s{forwarding{}}`.
struct forwarding {};

}  // namespace ibvxx::shim
