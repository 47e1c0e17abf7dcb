#include "device/data_path/route.hpp"

#include "core/multicast_membership.hpp"
#include "device/context.hpp"
#include "device/machine.hpp"

namespace ibvxx::shim {
namespace {

[[nodiscard]] bool is_active(const sim_device& device, std::uint32_t port) noexcept {
  const port_description* found = find_port(device, port);
  return found && found->state == IBV_PORT_ACTIVE && !device.lost;
}

[[nodiscard]] bool has_gid(const sim_device& device, std::size_t port, std::size_t index,
                           const ibv_gid& gid) noexcept {
  const auto& ports = device.described.ports;
  return port < ports.size() && index < ports[port].gids.size() &&
         same_gid(ports[port].gids[index].gid, gid);
}

[[nodiscard]] destination by_gid(session_state& state, const ibv_gid& gid,
                                 route_hint& hint) noexcept {
  const auto& devices = machine_of(state).devices;
  const auto at = [&devices](std::size_t device, std::size_t port) -> destination {
    sim_device& found = *devices[device];
    const auto number = static_cast<std::uint32_t>(port + 1);
    if (!is_active(found, number)) return {};
    return {&found, number};
  };
  if (hint.device < devices.size() && has_gid(*devices[hint.device], hint.port, hint.gid, gid))
    return at(hint.device, hint.port);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const auto& ports = devices[d]->described.ports;
    for (std::size_t p = 0; p < ports.size(); ++p)
      for (std::size_t i = 0; i < ports[p].gids.size(); ++i)
        if (same_gid(ports[p].gids[i].gid, gid)) {
          hint.device = d;
          hint.port = p;
          hint.gid = i;
          return at(d, p);
        }
  }
  return {};
}

[[nodiscard]] destination by_lid(session_state& state, std::uint16_t lid) noexcept {
  for (const auto& device : machine_of(state).devices)
    for (std::uint32_t port = 1; port <= device->described.ports.size(); ++port)
      if (device->described.ports[port - 1].lid == lid && lid != 0 && is_active(*device, port))
        return {device.get(), port};
  return {};
}

}  // namespace

ibv_gid source_gid(const sim_context& context, const ibv_ah_attr& address) noexcept {
  const port_description* port = find_port(*context.device, address.port_num);
  const std::size_t index = address.grh.sgid_index;
  return port && index < port->gids.size() ? port->gids[index].gid : ibv_gid{};
}

std::uint16_t source_lid(const sim_context& context, const ibv_ah_attr& address) noexcept {
  const port_description* port = find_port(*context.device, address.port_num);
  return port ? port->lid : std::uint16_t{0};
}

destination route(session_state& state, const sim_context& from, const ibv_ah_attr& address,
                  route_hint& hint) noexcept {
  if (!is_active(*from.device, address.port_num)) return {};
  return address.is_global != 0 ? by_gid(state, address.grh.dgid, hint)
                                : by_lid(state, address.dlid);
}

}  // namespace ibvxx::shim
