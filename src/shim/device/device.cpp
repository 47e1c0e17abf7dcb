#include "device/device.hpp"

#include <net/if.h>

#include <endian.h>

#include <stdexcept>
#include <string>

namespace ibvxx::shim {
namespace {

[[noreturn]] void refuse_description(const std::string& device, const std::string& why) {
  throw std::invalid_argument("shim: simulated device '" + device + "': " + why);
}

void validate_port(const device_description& device, std::size_t number) {
  const port_description& port = device.ports[number - 1];
  const std::string prefix = "port " + std::to_string(number) + ": ";
  if (port.state < IBV_PORT_NOP || port.state > IBV_PORT_ACTIVE_DEFER)
    refuse_description(device.name, prefix + "state is no ibv_port_state");
  if (port.max_mtu < IBV_MTU_256 || port.max_mtu > IBV_MTU_4096)
    refuse_description(device.name, prefix + "max_mtu is no ibv_mtu");
  if (port.active_mtu < IBV_MTU_256 || port.active_mtu > port.max_mtu)
    refuse_description(device.name, prefix + "active_mtu is outside IBV_MTU_256..max_mtu");
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET && port.link_layer != IBV_LINK_LAYER_INFINIBAND)
    refuse_description(device.name, prefix + "link_layer is neither Ethernet nor InfiniBand");
  // 0 is valid: ports of mlx5's representors have no GID table.
  if (port.gid_table_size < 0 || port.gid_table_size > 1024)
    refuse_description(device.name, prefix + "gid_table_size is outside 0..1024");
  if (port.gids.size() > static_cast<std::size_t>(port.gid_table_size))
    refuse_description(device.name, prefix + std::to_string(port.gids.size()) +
                                        " gids do not fit gid_table_size " +
                                        std::to_string(port.gid_table_size));
}

void validate(const device_description& device) {
  if (device.name.empty()) refuse_description(device.name, "name is empty");
  if (device.name.size() >= IBV_SYSFS_NAME_MAX)
    refuse_description(device.name, "name has more than 63 characters");
  if (device.ports.empty() || device.ports.size() > 255)
    refuse_description(device.name, "the number of ports is outside 1..255");
  if (device.completion_vectors < 1)
    refuse_description(device.name, "completion_vectors is below 1");
  if (device.limits.max_cqe < 1) refuse_description(device.name, "limits.max_cqe is below 1");
  if (device.limits.max_cq < 1) refuse_description(device.name, "limits.max_cq is below 1");
  if (device.max_inline_data > 4096)
    refuse_description(device.name, "max_inline_data is above 4096");
  if (device.max_dm_size > std::uint64_t{1} << 32)
    refuse_description(device.name, "max_dm_size is above 4 GiB");
  for (std::size_t number = 1; number <= device.ports.size(); ++number)
    validate_port(device, number);
}

}  // namespace

std::shared_ptr<sim_device> make_device(const device_description& described, std::size_t place) {
  validate(described);
  auto device = std::make_shared<sim_device>();
  device->described = described;
  ibv_device_attr& limits = device->described.limits;
  limits.phys_port_cnt = static_cast<std::uint8_t>(described.ports.size());
  // Each device has a GUID of its own where none is described.
  if (limits.node_guid == 0) limits.node_guid = htobe64(0x020000fffe000000 + place);
  if (limits.sys_image_guid == 0) limits.sys_image_guid = limits.node_guid;
  ibv_device& verbs = device->verbs;
  verbs.node_type = IBV_NODE_CA;
  verbs.transport_type = IBV_TRANSPORT_IB;
  const std::string node = "uverbs" + std::to_string(place);
  described.name.copy(verbs.name, sizeof verbs.name - 1);
  node.copy(verbs.dev_name, sizeof verbs.dev_name - 1);
  // Not operator+: GCC 12 warns of it under -O3, wrongly (GCC bug 105329).
  std::string("/sys/class/infiniband_verbs/")
      .append(node)
      .copy(verbs.dev_path, sizeof verbs.dev_path - 1);
  std::string("/sys/class/infiniband/")
      .append(described.name)
      .copy(verbs.ibdev_path, sizeof verbs.ibdev_path - 1);
  return device;
}

const port_description* find_port(const sim_device& device, std::uint32_t port) noexcept {
  const device_description& d = device.described;
  return port >= 1 && port <= d.limits.phys_port_cnt ? &d.ports[port - 1] : nullptr;
}

bool fill_gid_entry(const port_description& port, std::uint32_t number, std::uint32_t index,
                    ibv_gid_entry& out) noexcept {
  if (index >= port.gids.size()) return false;
  const gid_slot& slot = port.gids[index];
  if (slot.gid.global.subnet_prefix == 0 && slot.gid.global.interface_id == 0) return false;
  out.gid = slot.gid;
  out.gid_index = index;
  out.port_num = number;
  out.gid_type = static_cast<std::uint32_t>(slot.type);
  out.ndev_ifindex = slot.ndev_ifindex;
  return true;
}

bool is_full(const sim_device& device, object_kind kind, int limit) noexcept {
  return limit >= 0 &&
         device.live_counts[static_cast<std::size_t>(kind)] >= static_cast<unsigned>(limit);
}

}  // namespace ibvxx::shim
