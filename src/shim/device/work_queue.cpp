#include "device/work_queue.hpp"

// Soft-RoCE has no work queues. The checks are those of the kernel's uverbs_cmd.c and of mlx5. No
// packet arrives.
#include <cerrno>
#include <cstddef>
#include <vector>

#include "core/acknowledgements.hpp"
#include "core/request_list.hpp"
#include "device/completion_queue.hpp"
#include "device/domain.hpp"
#include "device/events.hpp"
#include "device/object.hpp"

namespace ibvxx::shim {
namespace device {

int post_wq_recv(call& c, ibv_wq* wq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  auto* queue = c.use<sim_wq>(wq);
  if (!queue || c.failing()) return refuse(list, bad, c.refuse_code());
  std::size_t place = 0;
  for (ibv_recv_wr* one = list; one; one = one->next) {
    const bool too_long =
        one->num_sge < 0 || static_cast<std::uint32_t>(one->num_sge) > queue->max_sge;
    int code = too_long ? EINVAL : queue->posted >= queue->max_wr ? ENOMEM : 0;
    if (c.refuses_request(++place)) code = c.refusal_of_request();
    if (code != 0) return refuse(one, bad, code);
    ++queue->posted;
  }
  return 0;
}

int modify_wq(call& c, ibv_wq* wq, ibv_wq_attr* a) {
  auto* queue = c.use<sim_wq>(wq);
  if (!queue || c.failing() || !c.given(a, "attr")) return c.refuse_code();
  // ib_uverbs_ex_modify_wq: a mask that is not 0, no unknown bits, and the right current state.
  constexpr unsigned known = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS;
  if (a->attr_mask == 0 || (a->attr_mask & ~known) != 0) return EINVAL;
  if ((a->attr_mask & IBV_WQ_ATTR_CURR_STATE) != 0 && a->curr_wq_state != queue->state)
    return EINVAL;
  if ((a->attr_mask & IBV_WQ_ATTR_STATE) != 0) {
    const ibv_wq_state to = a->wq_state;
    if (to < IBV_WQS_RESET || to > IBV_WQS_ERR) return EINVAL;
    // mlx5: a queue leaves ERR only for RESET, and does not enter ERR from RESET.
    if ((queue->state == IBV_WQS_ERR && to == IBV_WQS_RDY) ||
        (queue->state == IBV_WQS_RESET && to == IBV_WQS_ERR))
      return EINVAL;
    queue->state = to;
    if (to == IBV_WQS_RESET) queue->posted = 0;
  }
  if ((a->attr_mask & IBV_WQ_ATTR_FLAGS) != 0) {
    if (a->flags_mask >= IBV_WQ_FLAGS_RESERVED) return EOPNOTSUPP;
    queue->flags = (queue->flags & ~a->flags_mask) | (a->flags & a->flags_mask);
  }
  wq->state = queue->state;
  return c.concluded();
}

int destroy_wq(call& c, ibv_wq* wq) {
  auto* ending = c.ending<sim_wq>(wq);
  if (!ending) return c.refuse_code();
  if (const int code = c.may_destroy(wq)) return code;
  drop_async_events(*ending->context, wq);
  wait_for_acks(c, *c.record_of(wq));
  c.retire(wq);
  return c.concluded();
}

ibv_rwq_ind_table* create_rwq_ind_table(call& c, ibv_context* context,
                                        ibv_rwq_ind_table_init_attr* a) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(a, "attr")) return c.refuse_pointer();
  if (!owner->offers().work_queues) return c.refuse_pointer(EOPNOTSUPP);
  // IB_USER_VERBS_MAX_LOG_IND_TBL_SIZE of the kernel.
  if (a->comp_mask != 0 || a->log_ind_tbl_size > 0x0d) return c.refuse_pointer();
  if (!c.given(a->ind_tbl, "ind_tbl")) return c.refuse_pointer();
  const std::size_t size = std::size_t{1} << a->log_ind_tbl_size;
  std::vector<record*> queues;
  queues.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    if (!c.use<sim_wq>(a->ind_tbl[i])) return c.refuse_pointer();
    queues.push_back(c.record_of(a->ind_tbl[i]));
  }
  auto made = std::make_shared<sim_rwq_ind_table>();
  made->context = owner;
  made->verbs.context = context;
  made->verbs.ind_tbl_handle = made->verbs.ind_tbl_num = static_cast<int>(handle_of(c));
  record_object(c, made, &made->verbs, *owner->device, std::span<record* const>(queues));
  return &made->verbs;
}

int destroy_rwq_ind_table(call& c, ibv_rwq_ind_table* table) {
  return c.ending<sim_rwq_ind_table>(table) ? c.concluded(c.destroy(table)) : c.refuse_code();
}

ibv_wq* create_wq(call& c, ibv_context* context, ibv_wq_init_attr* a) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(a, "attr")) return c.refuse_pointer();
  if (!owner->offers().work_queues) return c.refuse_pointer(EOPNOTSUPP);
  auto* pd = c.use<sim_pd>(a->pd);
  auto* cq = c.use<sim_cq>(a->cq);
  if (!pd || !cq) return c.refuse_pointer();
  const bool flags = (a->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) != 0;
  if (a->wq_type != IBV_WQT_RQ || (a->comp_mask & ~unsigned{IBV_WQ_INIT_ATTR_FLAGS}) != 0 ||
      (flags && a->create_flags >= IBV_WQ_FLAGS_RESERVED))
    return c.refuse_pointer(EOPNOTSUPP);
  const ibv_device_attr& limits = owner->limits();
  if (a->max_wr == 0 || a->max_wr > static_cast<std::uint32_t>(limits.max_qp_wr) ||
      a->max_sge > static_cast<std::uint32_t>(limits.max_sge))
    return c.refuse_pointer();
  auto made = std::make_shared<sim_wq>();
  made->context = owner;
  made->cq = cq;
  made->flags = flags ? a->create_flags : 0;
  made->max_wr = a->max_wr = queue_capacity(a->max_wr);
  made->max_sge = a->max_sge;
  ibv_wq& verbs = made->verbs;
  verbs.context = context;
  verbs.wq_context = a->wq_context;
  verbs.pd = a->pd;
  verbs.cq = a->cq;
  verbs.wq_num = verbs.handle = handle_of(c);
  verbs.state = IBV_WQS_RESET;
  verbs.wq_type = a->wq_type;
  record_object(c, made, &verbs, *owner->device, {c.record_of(a->pd), c.record_of(a->cq)});
  return &verbs;
}

}  // namespace device
}  // namespace ibvxx::shim
