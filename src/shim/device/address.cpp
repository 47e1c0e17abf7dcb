#include "device/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/multicast_membership.hpp"
#include "device/domain.hpp"
#include "device/object.hpp"

namespace ibvxx::shim {
namespace {

[[nodiscard]] bool is_zero(const ibv_gid& gid) noexcept {
  return gid.global.subnet_prefix == 0 && gid.global.interface_id == 0;
}

/// The index of a GID of that type in a port's table, or -1 with errno EINVAL: libibverbs looks
/// until a query fails, which it does at the table's end (measured).
[[nodiscard]] int find_gid(const port_description& port, const ibv_gid& gid, bool v2) noexcept {
  for (std::size_t i = 0; i < port.gids.size(); ++i)
    if (same_gid(port.gids[i].gid, gid) && (port.gids[i].type == IBV_GID_TYPE_ROCE_V2) == v2)
      return static_cast<int>(i);
  errno = EINVAL;
  return -1;
}

[[nodiscard]] ibv_gid mapped(std::uint32_t address) noexcept {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, &address, sizeof address);
  return gid;
}

/// The checksum of an IPv4 header without options (RFC 791): valid where the sum is all ones.
[[nodiscard]] bool checksum_holds(const std::uint8_t* header) noexcept {
  std::uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) {
    std::uint16_t word = 0;
    std::memcpy(&word, header + i, sizeof word);
    sum += word;
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

/// The version of the IP header in the 40 bytes before a datagram: an IPv4 header is in the last 20
/// of them (RoCE v2 annex A17). 0: neither. Bytes 20 to 39 of an IPv6 header may look like an IPv4
/// header, so then the checksum decides.
[[nodiscard]] int header_version(const ibv_grh& grh) noexcept {
  std::array<std::uint8_t, sizeof grh> bytes{};
  std::memcpy(bytes.data(), &grh, sizeof grh);
  const bool v4 = bytes[20] >> 4 == 4;
  if (bytes[0] >> 4 != 6) return v4 ? 4 : 0;
  return bytes[20] == 0x45 && checksum_holds(bytes.data() + 20) ? 4 : 6;
}

[[nodiscard]] int address_from_v4(const port_description& port, const ibv_grh& grh,
                                  ibv_ah_attr& out) noexcept {
  iphdr header{};
  std::memcpy(&header, reinterpret_cast<const std::uint8_t*>(&grh) + 20, sizeof header);
  if (IN_MULTICAST(ntohl(header.daddr))) {
    errno = EINVAL;
    return -1;
  }
  const int index = find_gid(port, mapped(header.daddr), true);
  if (index < 0) return -1;
  out.grh.dgid = mapped(header.saddr);
  out.grh.sgid_index = static_cast<std::uint8_t>(index);
  out.grh.hop_limit = header.ttl;
  out.grh.traffic_class = header.tos;
  return 0;
}

[[nodiscard]] int address_from_v6(const port_description& port, const ibv_grh& grh,
                                  ibv_ah_attr& out) noexcept {
  constexpr std::uint8_t next_is_bth = 0x1b;  // IBA 8.3.6: RoCE v1
  if (grh.dgid.raw[0] == 0xff) {
    errno = EINVAL;
    return -1;
  }
  out.grh.dgid = grh.sgid;
  if (grh.next_hdr != IPPROTO_UDP && grh.next_hdr != next_is_bth) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  const int index = find_gid(port, grh.dgid, grh.next_hdr == IPPROTO_UDP);
  if (index < 0) return -1;
  out.grh.sgid_index = static_cast<std::uint8_t>(index);
  out.grh.hop_limit = grh.hop_limit;
  out.grh.traffic_class = static_cast<std::uint8_t>(ntohl(grh.version_tclass_flow) >> 20);
  return 0;
}

/// As ibv_init_ah_from_wc: 0, or -1 with errno.
[[nodiscard]] int address_of_sender(const sim_context& context, std::uint8_t number,
                                    const ibv_wc& wc, const ibv_grh* grh,
                                    ibv_ah_attr& out) noexcept {
  out = {};
  // libibverbs reads the header in either case (rdma-core 44); a null one is a finding already.
  if (grh) out.grh.flow_label = ntohl(grh->version_tclass_flow) & 0xfffff;
  out.dlid = wc.slid;
  out.sl = wc.sl;
  out.src_path_bits = wc.dlid_path_bits;
  out.port_num = number;
  if ((wc.wc_flags & IBV_WC_GRH) == 0) return 0;
  out.is_global = 1;
  const port_description* port = find_port(*context.device, number);
  const int version = grh ? header_version(*grh) : 0;
  if (version == 0) errno = EPROTONOSUPPORT;
  if (version != 0 && !port) errno = EINVAL;
  if (version == 0 || !port) return -1;
  return version == 4 ? address_from_v4(*port, *grh, out) : address_from_v6(*port, *grh, out);
}

ibv_ah* make_address(call& c, sim_pd& owner, ibv_pd* pd, const ibv_ah_attr& attributes) {
  if (const int code = check_address(*owner.context, attributes)) return c.refuse_pointer(code);
  if (is_full(*owner.context->device, object_kind::ah, owner.context->limits().max_ah))
    return c.refuse_pointer(owner.context->behaviour().too_many_objects);
  auto made = std::make_shared<sim_ah>();
  made->context = owner.context;
  made->domain = owner.domain;
  made->attr = attributes;
  made->verbs.context = pd->context;
  made->verbs.pd = pd;
  made->verbs.handle = handle_of(c);
  record_object(c, made, &made->verbs, *owner.context->device, {c.record_of(pd)});
  return &made->verbs;
}

}  // namespace

int check_address(const sim_context& context, const ibv_ah_attr& address) noexcept {
  const port_description* port = find_port(*context.device, address.port_num);
  if (!port) return EINVAL;
  const bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;
  if (address.is_global == 0) return ethernet ? EINVAL : 0;
  const std::uint32_t index = address.grh.sgid_index;
  if (index >= static_cast<std::uint32_t>(port->gid_table_size)) return EINVAL;
  if (index >= port->gids.size() || is_zero(port->gids[index].gid)) return ENODATA;
  if (!ethernet) return 0;
  const ibv_gid& destination = address.grh.dgid;
  if (is_zero(destination)) return EINVAL;
  if (destination.raw[0] == 0xff) return 0;  // a multicast GID may be of either family
  if (is_v4_gid(destination) != is_v4_gid(port->gids[index].gid)) return EINVAL;
  // The kernel resolves the destination at once (ib_resolve_eth_dmac; measured).
  return port->state == IBV_PORT_ACTIVE ? 0 : ENETUNREACH;
}

bool is_v4_gid(const ibv_gid& gid) noexcept {
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, mapped, sizeof mapped) == 0;
}

namespace device {

ibv_ah* create_ah(call& c, ibv_pd* pd, ibv_ah_attr* attributes) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing() || !c.given(attributes, "attr")) return c.refuse_pointer();
  return make_address(c, *owner, pd, *attributes);
}

int init_ah_from_wc(call& c, ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                    ibv_ah_attr* out) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(wc, "wc") || !c.given(out, "ah_attr"))
    return c.refuse_minus_one();
  static_cast<void>(c.given(grh, "grh"));
  return address_of_sender(*owner, port, *wc, grh, *out);
}

ibv_ah* create_ah_from_wc(call& c, ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing() || !c.given(wc, "wc")) return c.refuse_pointer();
  static_cast<void>(c.given(grh, "grh"));
  ibv_ah_attr attributes;
  if (address_of_sender(*owner->context, port, *wc, grh, attributes) != 0) return nullptr;
  return make_address(c, *owner, pd, attributes);
}

int destroy_ah(call& c, ibv_ah* ah) {
  return c.ending<sim_ah>(ah) ? c.concluded(c.destroy(ah)) : c.refuse_code();
}

// The MAC address of a peer is derived from its GID, and there is no VLAN.
int resolve_eth_l2_from_gid(call& c, ibv_context* context, ibv_ah_attr* address, std::uint8_t* mac,
                            std::uint16_t* vlan) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(address, "attr") || !c.given(mac, "eth_mac"))
    return c.refuse_minus_one();
  const port_description* port = find_port(*owner->device, address->port_num);
  const std::uint32_t index = address->grh.sgid_index;
  if (!port || index >= static_cast<std::uint32_t>(port->gid_table_size))
    return c.refuse_minus_one();
  ibv_gid_entry own{};
  if (!fill_gid_entry(*port, address->port_num, index, own)) return -EINVAL;
  const std::uint8_t* peer = address->grh.dgid.raw;
  const std::uint8_t made_up[6] = {0x02, 0, peer[12], peer[13], peer[14], peer[15]};
  std::copy(std::begin(made_up), std::end(made_up), mac);
  if (vlan) *vlan = 0xffff;
  return 0;
}

}  // namespace device
}  // namespace ibvxx::shim
