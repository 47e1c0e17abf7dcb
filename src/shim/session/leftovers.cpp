#include "session/leftovers.hpp"

#include <infiniband/verbs.h>

#include <vector>

#include "core/engine.hpp"
#include "core/multicast_membership.hpp"
#include "forward/recorded_verbs.hpp"

namespace ibvxx::shim {

void destroy_leftovers() {
  const engine::suppress_interception quiet;
  std::vector<real::missing_acks> left;
  {
    const auto seen = engine::lock_session();
    for (const record* object : seen.state.objects.all_live()) {
      left.push_back(real::take_missing_acks(const_cast<record&>(*object)));
    }
  }
  // The youngest first. What cannot be destroyed stays alive: the run has reported it.
  for (auto object = left.rbegin(); object != left.rend(); ++object) {
    real::acknowledge(*object);
    void* const handle = object->handle;
    switch (object->kind) {
      case object_kind::device_list:
        ::ibv_free_device_list(static_cast<ibv_device**>(handle));
        break;
      case object_kind::context:
        static_cast<void>(::ibv_close_device(static_cast<ibv_context*>(handle)));
        break;
      case object_kind::pd:
        static_cast<void>(::ibv_dealloc_pd(static_cast<ibv_pd*>(handle)));
        break;
      case object_kind::mr:
        static_cast<void>(::ibv_dereg_mr(static_cast<ibv_mr*>(handle)));
        break;
      case object_kind::comp_channel:
        static_cast<void>(::ibv_destroy_comp_channel(static_cast<ibv_comp_channel*>(handle)));
        break;
      case object_kind::cq:
        static_cast<void>(::ibv_destroy_cq(static_cast<ibv_cq*>(handle)));
        break;
      case object_kind::td:
        static_cast<void>(::ibv_dealloc_td(static_cast<ibv_td*>(handle)));
        break;
      case object_kind::xrcd:
        static_cast<void>(::ibv_close_xrcd(static_cast<ibv_xrcd*>(handle)));
        break;
      case object_kind::mw:
        static_cast<void>(::ibv_dealloc_mw(static_cast<ibv_mw*>(handle)));
        break;
      case object_kind::dm:
        static_cast<void>(::ibv_free_dm(static_cast<ibv_dm*>(handle)));
        break;
      case object_kind::qp:
        static_cast<void>(::ibv_destroy_qp(static_cast<ibv_qp*>(handle)));
        break;
      case object_kind::srq:
        static_cast<void>(::ibv_destroy_srq(static_cast<ibv_srq*>(handle)));
        break;
      case object_kind::ah:
        static_cast<void>(::ibv_destroy_ah(static_cast<ibv_ah*>(handle)));
        break;
      case object_kind::wq:
        static_cast<void>(::ibv_destroy_wq(static_cast<ibv_wq*>(handle)));
        break;
      case object_kind::rwq_ind_table:
        static_cast<void>(::ibv_destroy_rwq_ind_table(static_cast<ibv_rwq_ind_table*>(handle)));
        break;
      case object_kind::flow:
        static_cast<void>(::ibv_destroy_flow(static_cast<ibv_flow*>(handle)));
        break;
      case object_kind::flow_action:
        static_cast<void>(::ibv_destroy_flow_action(static_cast<ibv_flow_action*>(handle)));
        break;
      case object_kind::counters:
        static_cast<void>(::ibv_destroy_counters(static_cast<ibv_counters*>(handle)));
        break;
      case object_kind::multicast_membership: {
        const auto& member = *static_cast<const multicast_membership*>(handle);
        static_cast<void>(::ibv_detach_mcast(member.qp, &member.gid, member.lid));
        break;
      }
      case object_kind::descriptor:
        break;  // close() frees the descriptor even where it fails
    }
  }
}

}  // namespace ibvxx::shim
