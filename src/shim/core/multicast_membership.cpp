#include "core/multicast_membership.hpp"

namespace ibvxx::shim {
namespace {

/// Two memberships may have the same key.
[[nodiscard]] std::uint64_t key_of(const ibv_qp* qp, const ibv_gid& gid,
                                   std::uint16_t lid) noexcept {
  // Consecutive groups of a queue pair have neighbouring keys. The factor, 2^64 divided by the
  // golden ratio, keeps queue pairs apart.
  return reinterpret_cast<std::uintptr_t>(qp) * std::uint64_t{0x9e3779b97f4a7c15} ^
         gid.global.subnet_prefix ^ gid.global.interface_id ^ lid;
}

}  // namespace

std::shared_ptr<multicast_membership> make_membership(ibv_qp* qp, const ibv_gid& gid,
                                                      std::uint16_t lid) {
  auto made = std::make_shared<multicast_membership>();
  made->qp = qp;
  made->gid = gid;
  made->lid = lid;
  return made;
}

record* find_membership(const call& c, const ibv_qp* qp, const ibv_gid& gid,
                        std::uint16_t lid) noexcept {
  return c.state().objects.find_by_key(key_of(qp, gid, lid), [&](const record& object) {
    if (object.kind != object_kind::multicast_membership) return false;
    const auto* one = static_cast<const multicast_membership*>(object.storage.get());
    return one->qp == qp && same_gid(one->gid, gid) && one->lid == lid;
  });
}

void index_membership(const call& c, record& object) {
  const auto* one = static_cast<const multicast_membership*>(object.storage.get());
  c.state().objects.index(object, key_of(one->qp, one->gid, one->lid));
}

bool same_gid(const ibv_gid& a, const ibv_gid& b) noexcept {
  return a.global.subnet_prefix == b.global.subnet_prefix &&
         a.global.interface_id == b.global.interface_id;
}

}  // namespace ibvxx::shim
