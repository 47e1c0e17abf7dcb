// What the kernel lets ibv_modify_qp do.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

/// The kernel's verdict on a transition with the attributes in `mask`. It is written down here a
/// second time, apart from ibvxx/qp_transition.hpp: the shim checks the toolkit.
[[nodiscard]] bool modify_is_ok(ibv_qp_state from, ibv_qp_state to, ibv_qp_type type,
                                int mask) noexcept;

}  // namespace ibvxx::shim
