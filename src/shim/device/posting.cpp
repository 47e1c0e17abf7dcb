#include "device/posting.hpp"

#include <algorithm>
#include <cerrno>

#include "core/request_list.hpp"
#include "device/address.hpp"
#include "device/completion_queue.hpp"
#include "device/data_path/completion.hpp"
#include "device/data_path/send_queue.hpp"
#include "device/memory.hpp"
#include "device/memory_window.hpp"
#include "device/misuse.hpp"
#include "device/receive.hpp"

namespace ibvxx::shim {
namespace {

/// The checks of Soft-RoCE's provider before anything reaches the device (providers/rxe,
/// validate_send_wr; measured): 0 or the errno.
[[nodiscard]] int check_request(const sim_qp& qp, const ibv_send_wr& wr,
                                const send_request& request) noexcept {
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.cap.max_send_sge) return EINVAL;
  if (wr.num_sge != 0 && !wr.sg_list) return EINVAL;
  const bool atomic =
      wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const device_behaviour& behaviour = qp.context->behaviour();
  const bool misaligned =
      behaviour.misaligned_atomic_refused_at_post && wr.wr.atomic.remote_addr % 8 != 0;
  if (atomic && (request.length < 8 || misaligned)) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 && request.length > qp.cap.max_inline_data)
    return behaviour.too_much_inline_data;
  if (wr.opcode == IBV_WR_BIND_MW && wr.num_sge != 0) return EINVAL;
  return 0;
}

int post_one(call& c, sim_qp& qp, const ibv_send_wr& wr) {
  send_request request;
  if (wr.num_sge > 0 && wr.sg_list && static_cast<std::uint32_t>(wr.num_sge) <= qp.cap.max_send_sge)
    for (int i = 0; i < wr.num_sge; ++i) request.length += wr.sg_list[i].length;
  if (const int code = check_request(qp, wr, request)) return code;
  if (send_slots_left(qp) == 0) return ENOMEM;
  request.sges = wr.sg_list;
  request.sge_count = static_cast<std::uint32_t>(wr.num_sge);
  if (!translate(c, qp, wr, request)) return EINVAL;
  if (c.state().strict) find_wrong_memory(c, qp, request);
  submit(c.state(), qp, request);
  return 0;
}

/// A receive queue, of a queue pair or shared.
struct receive_target {
  request_queue<receive_request>& requests;
  std::uint32_t capacity;
  std::uint32_t max_sge;
  sim_context& context;
  const void* domain;
  const void* handle;
};

/// Puts a list of receives into a queue.
int post_receives(call& c, const receive_target& queue, ibv_recv_wr* list, ibv_recv_wr** bad) {
  std::size_t place = 0;
  for (ibv_recv_wr* one = list; one; one = one->next) {
    if (c.refuses_request(++place)) return refuse(one, bad, c.refusal_of_request());
    if (queue.requests.size() >= queue.capacity) return refuse(one, bad, ENOMEM);
    if (one->num_sge < 0 || static_cast<std::uint32_t>(one->num_sge) > queue.max_sge ||
        (one->num_sge != 0 && !one->sg_list))
      return refuse(one, bad, EINVAL);
    queue.requests.append([one](receive_request& slot) {
      slot.wr_id = one->wr_id;
      slot.sges.assign(one->sg_list, one->sg_list + one->num_sge);
    });
    if (!c.state().strict) continue;
    const record& object = *c.record_of(queue.handle);
    const receive_request& posted = queue.requests[queue.requests.size() - 1];
    find_wrong_memory(c, object, *queue.context.device, queue.domain, posted);
    find_reused_buffer(c, object, posted);
    queue.requests.index_buffers(object);
  }
  return 0;
}

}  // namespace

std::size_t send_slots_left(const sim_qp& qp) noexcept {
  const std::size_t used = qp.context->behaviour().slots_free_when_polled
                               ? std::size_t{qp.slots_in_use}
                               : qp.sends.size();
  return qp.cap.max_send_wr - std::min<std::size_t>(used, qp.cap.max_send_wr);
}

int check_sending(const sim_qp& qp) noexcept {
  switch (qp.state()) {
    case IBV_QPS_RESET:
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
      return EINVAL;
    default:
      return qp.verbs.qp_type == IBV_QPT_XRC_RECV ? EINVAL : 0;
  }
}

bool translate(call& c, const sim_qp& qp, const ibv_send_wr& wr, send_request& request) noexcept {
  request.wr_id = wr.wr_id;
  request.opcode = wr.opcode;
  request.flags = wr.send_flags;
  request.immediate = wr.invalidate_rkey;  // or imm_data: members of one union
  if (qp.verbs.qp_type == IBV_QPT_UD) {
    auto* ah = c.use<sim_ah>(wr.wr.ud.ah);
    if (!ah) return false;
    request.address = ah->attr;
    request.remote_qp = wr.wr.ud.remote_qpn;
    request.remote_qkey = wr.wr.ud.remote_qkey;
    return true;
  }
  if (qp.verbs.qp_type == IBV_QPT_XRC_SEND) request.remote_srq = wr.qp_type.xrc.remote_srqn;
  switch (wr.opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      request.remote_address = wr.wr.atomic.remote_addr;
      request.rkey = wr.wr.atomic.rkey;
      request.compare_or_add = wr.wr.atomic.compare_add;
      request.swap = wr.wr.atomic.swap;
      return true;
    case IBV_WR_BIND_MW: {
      const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
      request.window = c.use<sim_mw>(wr.bind_mw.mw);
      if (!request.window) return false;
      if (info.mr && !(request.region = c.use<sim_mr>(info.mr))) return false;
      request.region_key = request.region ? request.region->verbs.lkey : 0;
      request.window_key = wr.bind_mw.mw->rkey;
      request.new_key = wr.bind_mw.rkey;
      request.window_address = info.addr;
      request.window_length = info.length;
      request.window_access = info.mw_access_flags;
      return true;
    }
    default:
      request.remote_address = wr.wr.rdma.remote_addr;
      request.rkey = wr.wr.rdma.rkey;
      return true;
  }
}

namespace device {

int post_send(call& c, ibv_qp* handle, ibv_send_wr* list, ibv_send_wr** bad) {
  auto* qp = c.use<sim_qp>(handle);
  if (!qp || c.failing()) return refuse(list, bad, c.refuse_code());
  // Soft-RoCE's provider requires both (measured).
  if (!bad || !list) return EINVAL;
  *bad = nullptr;
  if (refuse_endless(c, list)) return refuse(list, bad, EINVAL);
  if (c.state().strict) find_wrong_state(c, *qp->original, false);
  if (const int code = check_sending(*qp->original))
    return qp->context->behaviour().state_refusal_sets_bad_wr ? refuse(list, bad, code)
                                                              : call::from_kernel(code);
  int code = 0;
  std::size_t place = 0;
  for (ibv_send_wr* one = list; one && code == 0; one = one->next) {
    code = c.refuses_request(++place) ? c.refusal_of_request() : post_one(c, *qp->original, *one);
    if (code != 0) *bad = one;
  }
  continue_waiting(c.state());
  return code;
}

int bind_mw(call& c, ibv_qp* handle, ibv_mw* mw, ibv_mw_bind* bind) {
  auto* qp = c.use<sim_qp>(handle);
  auto* window = qp ? c.use<sim_mw>(mw) : nullptr;
  if (!window || c.failing() || !c.given(bind, "mw_bind")) return c.refuse_code();
  // The providers set errno to the code that they return (measured; providers/mlx5). A zero-based
  // window is refused (measured).
  if ((bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0)
    return call::from_kernel(EINVAL);
  if (c.state().strict) find_wrong_state(c, *qp, false);
  if (const int code = check_sending(*qp)) return call::from_kernel(code);
  if (send_slots_left(*qp) == 0) return call::from_kernel(ENOMEM);
  ibv_send_wr wr{};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  send_request request;
  if (!translate(c, *qp, wr, request)) return EINVAL;
  submit(c.state(), *qp, request);
  mw->rkey = wr.bind_mw.rkey;  // at once; if the bind fails, the program must restore it
  continue_waiting(c.state());
  return 0;
}

int post_recv(call& c, ibv_qp* handle, ibv_recv_wr* list, ibv_recv_wr** bad) {
  auto* qp = c.use<sim_qp>(handle);
  if (!qp || c.failing()) return refuse(list, bad, c.refuse_code());
  if (!bad || !list) return EINVAL;
  *bad = nullptr;
  if (c.state().strict) find_wrong_state(c, *qp, true);
  // IBA C10-97.2.1; the provider checks the state in ibv_qp (measured).
  const bool has_queue =
      !qp->srq && qp->verbs.qp_type != IBV_QPT_XRC_SEND && qp->verbs.qp_type != IBV_QPT_XRC_RECV;
  if (!has_queue || qp->state() == IBV_QPS_RESET) return EINVAL;
  const int code = post_receives(
      c,
      {qp->receives, qp->cap.max_recv_wr, qp->cap.max_recv_sge, *qp->context, qp->domain, handle},
      list, bad);
  if (qp->state() == IBV_QPS_ERR && qp->context->behaviour().flushes_receives_posted_in_error)
    flush_receives(c.state(), *qp);
  wake_senders_to(c.state(), qp->verbs.qp_num);
  continue_waiting(c.state());
  return code;
}

int post_srq_recv(call& c, ibv_srq* handle, ibv_recv_wr* list, ibv_recv_wr** bad) {
  auto* srq = c.use<sim_srq>(handle);
  if (!srq || c.failing()) return refuse(list, bad, c.refuse_code());
  if (!bad || !list) return EINVAL;
  *bad = nullptr;
  const int code = post_receives(
      c, {srq->receives, srq->attr.max_wr, srq->attr.max_sge, *srq->context, srq->domain, handle},
      list, bad);
  serve_waiting(c.state(), *srq);
  return code;
}

}  // namespace device
}  // namespace ibvxx::shim
