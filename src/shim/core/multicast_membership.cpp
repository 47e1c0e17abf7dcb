#include "core/multicast_membership.hpp"

namespace ibvxx::shim {

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
  for (const record& object : c.state().objects.records()) {
    if (!object.live || object.kind != object_kind::multicast_membership) continue;
    const auto* one = static_cast<const multicast_membership*>(object.storage.get());
    if (one->qp == qp && same_gid(one->gid, gid) && one->lid == lid)
      return c.record_of(object.handle);
  }
  return nullptr;
}

bool same_gid(const ibv_gid& a, const ibv_gid& b) noexcept {
  return a.global.subnet_prefix == b.global.subnet_prefix &&
         a.global.interface_id == b.global.interface_id;
}

}  // namespace ibvxx::shim
