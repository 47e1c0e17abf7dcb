// The defaults of described devices, and what is refused in a description.
#include <arpa/inet.h>
#include <net/if.h>

#include <cstring>
#include <set>
#include <stdexcept>
#include <utility>

#include "sim_device.hpp"

namespace ibvxx::shim {

ibv_gid gid(std::string_view text) {
  ibv_gid parsed{};
  if (::inet_pton(AF_INET6, std::string(text).c_str(), parsed.raw) != 1)
    throw std::invalid_argument("shim: '" + std::string(text) + "' is no GID: an IPv6 address is");
  return parsed;
}

std::vector<gid_slot> port_description::default_gids() {
  return {{gid("fe80::2:c9ff:fe00:1"), IBV_GID_TYPE_ROCE_V2, 1},
          {gid("::ffff:10.0.0.1"), IBV_GID_TYPE_ROCE_V2, 1}};
}

ibv_device_attr device_description::default_limits() {
  ibv_device_attr limits{};
  std::strcpy(limits.fw_ver, "0.0.0");
  limits.vendor_id = 0xffffff;
  limits.max_mr_size = UINT64_MAX;
  limits.page_size_cap = 0xfffff000;
  limits.max_qp = 1048560;
  limits.max_qp_wr = 1048576;
  limits.device_cap_flags =
      IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_AUTO_PATH_MIG |
      IBV_DEVICE_CHANGE_PHY_PORT | IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_PORT_ACTIVE_EVENT |
      IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
      IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  limits.max_sge = 32;
  limits.max_sge_rd = 32;
  limits.max_cq = 1048576;
  limits.max_cqe = 32767;
  limits.max_mr = 524287;
  limits.max_pd = 1048576;
  limits.max_qp_rd_atom = 128;
  limits.max_res_rd_atom = 258048;
  limits.max_qp_init_rd_atom = 128;
  limits.atomic_cap = IBV_ATOMIC_HCA;
  limits.max_mw = 524287;
  limits.max_mcast_grp = 8192;
  limits.max_mcast_qp_attach = 56;
  limits.max_total_mcast_qp_attach = 458752;
  limits.max_ah = 32767;
  limits.max_srq = 917503;
  limits.max_srq_wr = 1048576;
  limits.max_srq_sge = 27;
  limits.max_pkeys = 64;
  limits.local_ca_ack_delay = 15;
  return limits;
}

device_features device_features::all() {
  device_features offers;
  for (bool device_features::*one : {&device_features::thread_domains,
                                     &device_features::parent_domains,
                                     &device_features::xrc,
                                     &device_features::memory_windows,
                                     &device_features::device_memory,
                                     &device_features::null_regions,
                                     &device_features::dmabuf_regions,
                                     &device_features::on_demand_paging,
                                     &device_features::reregistration,
                                     &device_features::advice,
                                     &device_features::imports,
                                     &device_features::extended_cqs,
                                     &device_features::completion_details,
                                     &device_features::cq_moderation,
                                     &device_features::extended_qps,
                                     &device_features::qp_create_flags,
                                     &device_features::raw_packets,
                                     &device_features::tag_matching,
                                     &device_features::work_queues,
                                     &device_features::flows,
                                     &device_features::flow_actions,
                                     &device_features::counters,
                                     &device_features::real_time_values,
                                     &device_features::rate_limits,
                                     &device_features::connection_options})
    offers.*one = true;
  return offers;
}

device_description device_description::hardware(std::string name) {
  device_description device;
  device.name = std::move(name);
  device.features = device_features::all();
  device.profile = device_profile::hardware;
  device.max_dm_size = 1U << 18;
  device.limits.device_cap_flags |= IBV_DEVICE_XRC;
  return device;
}

namespace {

[[noreturn]] void refuse(const std::string& device, const std::string& why) {
  throw std::invalid_argument("shim: simulated device '" + device + "': " + why);
}

void validate_port(const device_description& device, std::size_t number) {
  const port_description& port = device.ports[number - 1];
  const std::string prefix = "port " + std::to_string(number) + ": ";
  if (port.state < IBV_PORT_NOP || port.state > IBV_PORT_ACTIVE_DEFER)
    refuse(device.name, prefix + "state is no ibv_port_state");
  if (port.max_mtu < IBV_MTU_256 || port.max_mtu > IBV_MTU_4096)
    refuse(device.name, prefix + "max_mtu is no ibv_mtu");
  if (port.active_mtu < IBV_MTU_256 || port.active_mtu > port.max_mtu)
    refuse(device.name, prefix + "active_mtu is outside IBV_MTU_256..max_mtu");
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET && port.link_layer != IBV_LINK_LAYER_INFINIBAND)
    refuse(device.name, prefix + "link_layer is neither Ethernet nor InfiniBand");
  // None at all, as ports of mlx5's representors have it.
  if (port.gid_table_size < 0 || port.gid_table_size > 1024)
    refuse(device.name, prefix + "gid_table_size is outside 0..1024");
  if (port.gids.size() > static_cast<std::size_t>(port.gid_table_size))
    refuse(device.name, prefix + std::to_string(port.gids.size()) +
                            " gids do not fit gid_table_size " +
                            std::to_string(port.gid_table_size));
}

void validate(const device_description& device) {
  if (device.name.empty()) refuse(device.name, "name is empty");
  if (device.name.size() >= IBV_SYSFS_NAME_MAX)
    refuse(device.name, "name has more than 63 characters");
  if (device.ports.empty() || device.ports.size() > 255)
    refuse(device.name, "the number of ports is outside 1..255");
  if (device.completion_vectors < 1) refuse(device.name, "completion_vectors is below 1");
  if (device.limits.max_cqe < 1) refuse(device.name, "limits.max_cqe is below 1");
  if (device.limits.max_cq < 1) refuse(device.name, "limits.max_cq is below 1");
  if (device.max_inline_data > 4096) refuse(device.name, "max_inline_data is above 4096");
  if (device.max_dm_size > std::uint64_t{1} << 32)
    refuse(device.name, "max_dm_size is above 4 GiB");
  for (std::size_t number = 1; number <= device.ports.size(); ++number)
    validate_port(device, number);
}

}  // namespace

std::vector<std::shared_ptr<sim_device>> make_devices(const simulated& machine) {
  std::vector<std::shared_ptr<sim_device>> devices;
  std::set<std::string> names;
  for (const device_description& described : machine.devices) {
    validate(described);
    if (!names.insert(described.name).second) refuse(described.name, "two devices have this name");
    auto device = std::make_shared<sim_device>();
    device->described = described;
    device->described.limits.phys_port_cnt = static_cast<std::uint8_t>(described.ports.size());
    // Each device has a GUID of its own where none is described.
    ibv_device_attr& limits = device->described.limits;
    if (limits.node_guid == 0) limits.node_guid = htobe64(0x020000fffe000000 + devices.size());
    if (limits.sys_image_guid == 0) limits.sys_image_guid = limits.node_guid;
    ibv_device& verbs = device->verbs;
    verbs.node_type = IBV_NODE_CA;
    verbs.transport_type = IBV_TRANSPORT_IB;
    const std::string node = "uverbs" + std::to_string(devices.size());
    described.name.copy(verbs.name, sizeof verbs.name - 1);
    node.copy(verbs.dev_name, sizeof verbs.dev_name - 1);
    // Not operator+: GCC 12 warns of it under -O3, wrongly (GCC bug 105329).
    std::string("/sys/class/infiniband_verbs/")
        .append(node)
        .copy(verbs.dev_path, sizeof verbs.dev_path - 1);
    std::string("/sys/class/infiniband/")
        .append(described.name)
        .copy(verbs.ibdev_path, sizeof verbs.ibdev_path - 1);
    devices.push_back(std::move(device));
  }
  return devices;
}

const port_description* find_port(const sim_device& device, std::uint32_t port) noexcept {
  return port >= 1 && port <= device.described.ports.size() ? &device.described.ports[port - 1]
                                                            : nullptr;
}

}  // namespace ibvxx::shim
