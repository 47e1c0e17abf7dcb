// Address handles and multicast membership.
#include "sim_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "fabric.hpp"
#include "interpose.hpp"
#include "sim_queue_pair.hpp"

namespace ibvxx::shim {
namespace {

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

/// The checksum of an IPv4 header without options (RFC 791): right when it sums up to all ones.
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

/// The version of the IP header in the 40 bytes before a datagram: an IPv4 header stands in the
/// last 20 of them (RoCE v2 annex A17). 0: neither. Bytes 20 to 39 of an IPv6 header may look like
/// an IPv4 header, so then the checksum decides.
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
  // libibverbs reads the header in either case (rdma-core 44); a null one has been told of.
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
    return c.refuse_pointer(owner.context->out_of_room());
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

/// The kernel's list of what a queue pair is attached to.
[[nodiscard]] record* find_membership(const call& c, const ibv_qp* qp, const ibv_gid& gid,
                                      std::uint16_t lid) noexcept {
  for (const record& object : c.state().objects.records()) {
    if (!object.live || object.kind != object_kind::multicast_membership) continue;
    const auto* one = static_cast<const sim_multicast*>(object.storage.get());
    if (one->qp == qp && same_gid(one->gid, gid) && one->lid == lid)
      return c.record_of(object.handle);
  }
  return nullptr;
}

[[nodiscard]] std::shared_ptr<sim_multicast> make_membership(ibv_qp* qp, const ibv_gid& gid,
                                                             std::uint16_t lid) {
  auto made = std::make_shared<sim_multicast>();
  made->qp = qp;
  made->gid = gid;
  made->lid = lid;
  return made;
}

/// ib_attach_mcast and ib_detach_mcast of the kernel: UD, and a multicast GID (measured).
[[nodiscard]] bool can_be_member(const ibv_qp& qp, const ibv_gid& gid) noexcept {
  // ::ffff:224.0.0.0/100 is a multicast address too (measured).
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool ipv4 =
      std::memcmp(gid.raw, mapped, sizeof mapped) == 0 && (gid.raw[12] & 0xf0) == 0xe0;
  return qp.qp_type == IBV_QPT_UD && (gid.raw[0] == 0xff || ipv4);
}

}  // namespace
}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  call c(verb::create_ah, pd);
  if (c.forwarded()) return forward<ibv_ah*>(c, "ibv_create_ah", pd, attributes);
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing() || !c.given(attributes, "attr")) return c.refuse_pointer();
  return make_address(c, *owner, pd, *attributes);
}

int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* out) {
  call c(verb::init_ah_from_wc, context);
  if (c.forwarded()) return forward<int>(c, "ibv_init_ah_from_wc", context, port, wc, grh, out);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(wc, "wc") || !c.given(out, "ah_attr"))
    return c.refuse_minus_one();
  static_cast<void>(c.given(grh, "grh"));
  return address_of_sender(*owner, port, *wc, grh, *out);
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  call c(verb::create_ah_from_wc, pd);
  if (c.forwarded()) return forward<ibv_ah*>(c, "ibv_create_ah_from_wc", pd, wc, grh, port);
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing() || !c.given(wc, "wc")) return c.refuse_pointer();
  static_cast<void>(c.given(grh, "grh"));
  ibv_ah_attr attributes;
  if (address_of_sender(*owner->context, port, *wc, grh, attributes) != 0) return nullptr;
  return make_address(c, *owner, pd, attributes);
}

int ibv_destroy_ah(ibv_ah* ah) {
  call c(verb::destroy_ah, ah);
  if (c.forwarded()) return forward<int>(c, "ibv_destroy_ah", ah);
  return c.ending<sim_ah>(ah) ? c.concluded(c.destroy(ah)) : c.refuse_code();
}

// The kernel keeps a list by GID and LID, the driver one by GID alone. So the same GID attached
// under two LIDs is one membership of the driver's, which the first detach ends: the second is
// refused, and the queue pair can never be destroyed (measured on Soft-RoCE, Linux 6.1).
int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  call c(verb::attach_mcast, qp);
  if (c.forwarded()) {
    const int code = forward<int>(c, "ibv_attach_mcast", qp, gid, lid);
    if (code == 0 && c.is_seen() && !find_membership(c, qp, *gid, lid)) {
      const auto made = make_membership(qp, *gid, lid);
      c.add(made, made.get(), qp->context->device->name, {c.record_of(qp)});
    }
    return code;
  }
  auto* member = c.use<sim_qp>(qp);
  if (!member || c.failing() || !c.given(gid, "gid")) return c.refuse_code();
  if (find_membership(c, qp, *gid, lid)) return c.concluded();
  if (!can_be_member(*qp, *gid)) return call::from_kernel(EINVAL);
  if (std::none_of(member->groups.begin(), member->groups.end(),
                   [gid](const ibv_gid& g) { return same_gid(g, *gid); }))
    member->groups.push_back(*gid);
  auto& members = member->context->device->multicast_members;
  if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(member);
  const auto made = make_membership(qp, *gid, lid);
  record_object(c, made, made.get(), *member->context->device, {c.record_of(qp)});
  return c.concluded();
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  call c(verb::detach_mcast, qp);
  if (c.forwarded()) {
    record* const ending = c.is_seen() && gid ? find_membership(c, qp, *gid, lid) : nullptr;
    if (ending && c.failing()) ending->destroy_injected = true;
    const int code = forward<int>(c, "ibv_detach_mcast", qp, gid, lid);
    if (ending && ending->live && code == 0) c.retire(ending->handle);
    return code;
  }
  auto* member = c.use<sim_qp>(qp);
  if (!member || !c.given(gid, "gid")) return c.refuse_code();
  record* membership = find_membership(c, qp, *gid, lid);
  if (membership && c.failing()) return c.destroy(membership->handle);
  if (c.failing()) return c.refuse_code();
  const auto group = std::find_if(member->groups.begin(), member->groups.end(),
                                  [gid](const ibv_gid& g) { return same_gid(g, *gid); });
  if (!can_be_member(*qp, *gid) || group == member->groups.end()) return call::from_kernel(EINVAL);
  member->groups.erase(group);
  if (member->groups.empty()) std::erase(member->context->device->multicast_members, member);
  return c.concluded(membership ? c.destroy(membership->handle) : 0);
}

// Every peer has an address made up from its GID, and no VLAN.
int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* address, std::uint8_t* mac,
                                std::uint16_t* vlan) {
  call c(verb::resolve_eth_l2_from_gid, context);
  if (c.forwarded())
    return forward<int>(c, "ibv_resolve_eth_l2_from_gid", context, address, mac, vlan);
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

}  // extern "C"
