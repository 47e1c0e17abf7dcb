#include "device/multicast.hpp"

#include <cerrno>
#include <cstring>

#include "core/multicast_membership.hpp"
#include "device/object.hpp"
#include "device/queue_pair.hpp"

namespace ibvxx::shim {
namespace {

/// ib_attach_mcast and ib_detach_mcast of the kernel: UD, and a multicast GID (measured).
[[nodiscard]] bool can_be_member(const ibv_qp& qp, const ibv_gid& gid) noexcept {
  // ::ffff:224.0.0.0/100 is a multicast address too (measured).
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool ipv4 =
      std::memcmp(gid.raw, mapped, sizeof mapped) == 0 && (gid.raw[12] & 0xf0) == 0xe0;
  return qp.qp_type == IBV_QPT_UD && (gid.raw[0] == 0xff || ipv4);
}

}  // namespace

void leave_group(sim_qp& member, const gid_key& group) noexcept {
  auto& groups = member.context->device->multicast_groups;
  const auto joined = member.groups.find(group);
  const auto members = groups.find(group);
  members->second.erase(joined->second);
  if (members->second.empty()) groups.erase(members);
  member.groups.erase(joined);
}

namespace device {

// The kernel keeps a list by GID and LID, the driver one by GID alone. So the same GID attached
// under two LIDs is one membership of the driver's, which the first detach ends: the second is
// refused, and the queue pair can never be destroyed (measured on Soft-RoCE, Linux 6.1).
int attach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  auto* member = c.use<sim_qp>(qp);
  if (!member || c.failing() || !c.given(gid, "gid")) return c.refuse_code();
  if (find_membership(c, qp, *gid, lid)) return c.concluded();
  if (!can_be_member(*qp, *gid)) return call::from_kernel(EINVAL);
  if (!member->groups.contains(key_of(*gid))) {
    std::list<sim_qp*>& members = member->context->device->multicast_groups[key_of(*gid)];
    member->groups.emplace(key_of(*gid), members.insert(members.end(), member));
  }
  const auto made = make_membership(qp, *gid, lid);
  index_membership(c,
                   record_object(c, made, made.get(), *member->context->device, {c.record_of(qp)}));
  return c.concluded();
}

int detach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  auto* member = c.use<sim_qp>(qp);
  if (!member || !c.given(gid, "gid")) return c.refuse_code();
  record* membership = find_membership(c, qp, *gid, lid);
  if (membership && c.failing()) return c.destroy(membership->handle);
  if (c.failing()) return c.refuse_code();
  if (!can_be_member(*qp, *gid) || !member->groups.contains(key_of(*gid)))
    return call::from_kernel(EINVAL);
  leave_group(*member, key_of(*gid));
  return c.concluded(membership ? c.destroy(membership->handle) : 0);
}

}  // namespace device
}  // namespace ibvxx::shim
