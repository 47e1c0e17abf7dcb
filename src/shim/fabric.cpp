#include "fabric.hpp"

#include <cstring>

#include "sim_device.hpp"

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
                                 std::size_t (&hint)[3]) noexcept {
  const auto at = [&state](std::size_t device, std::size_t port) -> destination {
    sim_device& found = *state.devices[device];
    const auto number = static_cast<std::uint32_t>(port + 1);
    if (!is_active(found, number)) return {};
    return {&found, number};
  };
  if (hint[0] < state.devices.size() && has_gid(*state.devices[hint[0]], hint[1], hint[2], gid))
    return at(hint[0], hint[1]);
  for (std::size_t d = 0; d < state.devices.size(); ++d) {
    const auto& ports = state.devices[d]->described.ports;
    for (std::size_t p = 0; p < ports.size(); ++p)
      for (std::size_t i = 0; i < ports[p].gids.size(); ++i)
        if (same_gid(ports[p].gids[i].gid, gid)) {
          hint[0] = d;
          hint[1] = p;
          hint[2] = i;
          return at(d, p);
        }
  }
  return {};
}

[[nodiscard]] destination by_lid(session_state& state, std::uint16_t lid) noexcept {
  for (const auto& device : state.devices)
    for (std::uint32_t port = 1; port <= device->described.ports.size(); ++port)
      if (device->described.ports[port - 1].lid == lid && lid != 0 && is_active(*device, port))
        return {device.get(), port};
  return {};
}

[[nodiscard]] bool can_talk(ibv_qp_type from, ibv_qp_type to) noexcept {
  return from == IBV_QPT_XRC_SEND ? to == IBV_QPT_XRC_RECV : from == to;
}

/// Whether the peer takes packets from where this queue pair sends them (rxe: check_addr).
[[nodiscard]] bool expects(const sim_qp& peer, const sim_qp& qp) noexcept {
  const ibv_ah_attr& back = peer.attr.ah_attr;
  const ibv_ah_attr& forth = qp.attr.ah_attr;
  if (forth.is_global != 0)
    return back.is_global != 0 && same_gid(back.grh.dgid, source_gid(*qp.context, forth));
  const port_description* own = find_port(*qp.context->device, forth.port_num);
  return own && back.dlid == own->lid;
}

}  // namespace

bool same_gid(const ibv_gid& a, const ibv_gid& b) noexcept {
  return a.global.subnet_prefix == b.global.subnet_prefix &&
         a.global.interface_id == b.global.interface_id;
}

bool is_v4_gid(const ibv_gid& gid) noexcept {
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, mapped, sizeof mapped) == 0;
}

ibv_gid source_gid(const sim_context& context, const ibv_ah_attr& address) noexcept {
  const port_description* port = find_port(*context.device, address.port_num);
  const std::size_t index = address.grh.sgid_index;
  return port && index < port->gids.size() ? port->gids[index].gid : ibv_gid{};
}

destination route(session_state& state, const sim_context& from, const ibv_ah_attr& address,
                  std::size_t (&hint)[3]) noexcept {
  if (!is_active(*from.device, address.port_num)) return {};
  return address.is_global != 0 ? by_gid(state, address.grh.dgid, hint)
                                : by_lid(state, address.dlid);
}

sim_qp* find_peer(session_state& state, sim_qp& qp) noexcept {
  const destination there = route(state, *qp.context, qp.attr.ah_attr, qp.peer_hint);
  if (!there.device) return nullptr;
  sim_qp* peer = there.device->qps.find_qp(qp.attr.dest_qp_num & 0xffffff);
  if (!peer || !can_talk(qp.verbs.qp_type, peer->verbs.qp_type)) return nullptr;
  const ibv_qp_state state_there = peer->state();
  const bool receives = state_there == IBV_QPS_RTR || state_there == IBV_QPS_RTS ||
                        state_there == IBV_QPS_SQD || state_there == IBV_QPS_SQE;
  return receives && peer->attr.port_num == there.port && expects(*peer, qp) ? peer : nullptr;
}

}  // namespace ibvxx::shim
