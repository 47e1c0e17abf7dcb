// Memberships of multicast groups, of simulated and of real queue pairs.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "core/call.hpp"

namespace ibvxx::shim {

/// One membership in the kernel's list (drivers/infiniband/core/uverbs_cmd.c), which is by GID and
/// LID.
struct multicast_membership {
  static constexpr object_kind kind = object_kind::multicast_membership;
  ibv_qp* qp = nullptr;
  ibv_gid gid{};
  std::uint16_t lid = 0;
};

[[nodiscard]] std::shared_ptr<multicast_membership> make_membership(ibv_qp* qp, const ibv_gid& gid,
                                                                    std::uint16_t lid);
/// Makes a recorded membership one that find_membership() finds.
void index_membership(const call& c, record& object);
/// The live membership, or null. Costs: logarithmic in the live memberships.
[[nodiscard]] record* find_membership(const call& c, const ibv_qp* qp, const ibv_gid& gid,
                                      std::uint16_t lid) noexcept;

[[nodiscard]] bool same_gid(const ibv_gid& a, const ibv_gid& b) noexcept;

}  // namespace ibvxx::shim
