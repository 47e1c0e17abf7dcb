#include "device/queue_pair.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

#include "core/acknowledgements.hpp"
#include "device/completion_queue.hpp"
#include "device/data_path/completion.hpp"
#include "device/data_path/send_queue.hpp"
#include "device/domain.hpp"
#include "device/events.hpp"
#include "device/object.hpp"
#include "device/receive.hpp"
#include "device/work_queue.hpp"
#include "device/wr_api.hpp"

namespace ibvxx::shim {
namespace {

/// The attributes of ibv_create_qp and ibv_create_qp_ex in one structure.
struct wanted {
  ibv_qp_type type;
  ibv_qp_cap* cap;
  void* qp_context;
  ibv_pd* pd;
  ibv_cq* send_cq;
  ibv_cq* recv_cq;
  ibv_srq* srq;
  ibv_xrcd* xrcd = nullptr;
  ibv_rwq_ind_table* table = nullptr;
  bool signal_all;
  bool extended = false;
  std::uint64_t operations = 0;  // that can be posted call by call; 0: none
};

/// rxe_qp_chk_init and the kernel's own checks of the type (measured).
[[nodiscard]] int check_type(const sim_context& context, const wanted& w) noexcept {
  switch (w.type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
      return w.xrcd || w.table ? EINVAL : 0;
    case IBV_QPT_RAW_PACKET:
      return context.offers().raw_packets ? 0 : EOPNOTSUPP;
    case IBV_QPT_XRC_SEND:
      return context.offers().xrc ? (w.srq ? EINVAL : 0) : EOPNOTSUPP;
    case IBV_QPT_XRC_RECV:
      return context.offers().xrc && w.xrcd && !w.pd ? 0 : EINVAL;
    case IBV_QPT_DRIVER:
      return EOPNOTSUPP;
  }
  return EINVAL;
}

/// rxe_qp_chk_cap (measured): a queue pair with an SRQ has no receive queue of its own to check.
[[nodiscard]] int check_qp_sizes(const sim_context& context, const wanted& w) noexcept {
  const ibv_device_attr& limits = context.limits();
  const auto above = [](std::uint32_t asked, int limit) noexcept {
    return asked > static_cast<std::uint32_t>(std::max(limit, 0));
  };
  const ibv_qp_cap& cap = *w.cap;
  if (above(cap.max_send_wr, limits.max_qp_wr) || above(cap.max_send_sge, limits.max_sge))
    return EINVAL;
  if (!w.srq && !w.table &&
      (above(cap.max_recv_wr, limits.max_qp_wr) || above(cap.max_recv_sge, limits.max_sge)))
    return EINVAL;
  return cap.max_inline_data > context.device->described.max_inline_data ? EINVAL : 0;
}

/// Sets the capacities: SGEs and inline data share their space (rxe_qp_init_req), and the queues
/// have the capacity of queue_capacity(). The caller's cap returns the former only (measured).
void give_sizes(sim_qp& qp, const wanted& w) noexcept {
  ibv_qp_cap& given = *w.cap;
  constexpr auto sge = static_cast<std::uint32_t>(sizeof(ibv_sge));
  const std::uint32_t room = std::max(given.max_send_sge * sge, given.max_inline_data);
  given.max_send_sge = room / sge;
  given.max_inline_data = room;
  qp.cap = given;
  qp.cap.max_send_wr = queue_capacity(given.max_send_wr);
  qp.cap.max_recv_wr = w.srq ? 0 : queue_capacity(given.max_recv_wr);
  if (w.srq) qp.cap.max_recv_sge = 0;
}

/// Looks up an optional object; false for an invalid handle that is not null.
template <class Sim, class Handle>
[[nodiscard]] bool look_up_optional(call& c, Handle* handle, Sim*& found) noexcept {
  found = handle ? c.use<Sim>(handle) : nullptr;
  return found || !handle;
}

ibv_qp* create(call& c, sim_context& context, const wanted& w) {
  if (const int code = check_type(context, w)) return c.refuse_pointer(code);
  sim_pd* pd = nullptr;
  sim_xrcd* xrcd = nullptr;
  sim_rwq_ind_table* table = nullptr;
  sim_cq *send_cq = nullptr, *recv_cq = nullptr;
  sim_srq* srq = nullptr;
  if (!look_up_optional(c, w.pd, pd) || !look_up_optional(c, w.xrcd, xrcd) ||
      !look_up_optional(c, w.table, table) || !look_up_optional(c, w.send_cq, send_cq) ||
      !look_up_optional(c, w.recv_cq, recv_cq) || !look_up_optional(c, w.srq, srq))
    return c.refuse_pointer();
  const bool receiver = w.type == IBV_QPT_XRC_RECV;
  const bool lacks_send = !receiver && !send_cq && !table;
  const bool lacks_recv = !receiver && w.type != IBV_QPT_XRC_SEND && !recv_cq && !table;
  if (lacks_send || lacks_recv) {
    // libibverbs 44 crashes before it calls the kernel (measured).
    static_cast<void>(c.given(nullptr, lacks_send ? "send_cq" : "recv_cq"));
    return c.refuse_pointer();
  }
  if (const int code = check_qp_sizes(context, w)) return c.refuse_pointer(code);
  sim_device& device = *context.device;
  if (is_full(device, object_kind::qp, context.limits().max_qp))
    return c.refuse_pointer(context.behaviour().too_many_objects);
  auto made = std::make_shared<sim_qp>();
  const std::uint32_t number = device.qps.take(made.get());
  if (number == 0) return c.refuse_pointer(ENOMEM);
  made->context = &context;
  made->sends.attach(device);
  made->receives.attach(device);
  made->domain = pd ? pd->domain : nullptr;
  made->xrc_domain = xrcd ? xrcd->domain : nullptr;
  made->send_cq = send_cq;
  made->recv_cq = recv_cq;
  made->srq = srq;
  made->signal_all = w.signal_all;
  made->is_extended = w.extended;
  give_sizes(*made, w);
  made->attr.path_mtu = IBV_MTU_256;  // rxe_qp_init_misc (measured)
  if (w.operations != 0) install_builders(*made, w.operations);
  ibv_qp& verbs = made->verbs;
  verbs.context = &context.verbs.context;
  verbs.qp_context = w.qp_context;
  verbs.pd = w.pd;
  verbs.send_cq = w.send_cq;
  verbs.recv_cq = w.recv_cq;
  verbs.srq = w.srq;
  verbs.handle = handle_of(c);
  verbs.qp_num = number;
  verbs.state = IBV_QPS_RESET;
  verbs.qp_type = w.type;
  record_object(c, made, &verbs, device,
                {c.record_of(w.pd), c.record_of(w.xrcd), c.record_of(w.send_cq),
                 c.record_of(w.recv_cq), c.record_of(w.srq), c.record_of(w.table)})
      .thread_scope = pd ? pd->thread_scope : nullptr;
  return &verbs;
}

/// The provider's checks of extended attributes, before those of the kernel (providers/rxe of
/// rdma-core 44, measured; for hardware, what verbs.h allows).
[[nodiscard]] int check_extended(const sim_context& context,
                                 const ibv_qp_init_attr_ex& a) noexcept {
  const device_features& offers = context.offers();
  constexpr unsigned basic =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  unsigned known = basic;
  if (offers.xrc) known |= IBV_QP_INIT_ATTR_XRCD;
  if (offers.work_queues) known |= IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  if (offers.raw_packets) known |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  if (!offers.extended_qps || (a.comp_mask & ~known) != 0) return EOPNOTSUPP;
  const bool flags = (a.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && a.create_flags != 0;
  if (flags && !offers.qp_create_flags) return EOPNOTSUPP;
  if ((a.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0) return 0;
  constexpr std::uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr std::uint64_t unacknowledged = sends | IBV_QP_EX_WITH_RDMA_WRITE |
                                           IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                           IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
  constexpr std::uint64_t acknowledged =
      unacknowledged | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV;
  // IBV_QP_EX_WITH_ATOMIC_WRITE, not in every verbs.h: Soft-RoCE's provider accepts it, Linux 6.1
  // does not.
  constexpr std::uint64_t atomic_write = 1U << 12;
  std::uint64_t possible = 0;
  switch (a.qp_type) {
    case IBV_QPT_RC:
      possible =
          context.behaviour().takes_atomic_write_flag ? acknowledged | atomic_write : acknowledged;
      break;
    case IBV_QPT_XRC_SEND:
      possible = offers.xrc ? acknowledged : 0;
      break;
    case IBV_QPT_UC:
      possible = unacknowledged;
      break;
    case IBV_QPT_UD:
      possible = sends;
      break;
    default:
      return EOPNOTSUPP;
  }
  return (a.send_ops_flags & ~possible) != 0 ? EOPNOTSUPP : 0;
}

}  // namespace

void end_queue_pair(session_state& state, sim_qp& qp) noexcept {
  clear_work(state, qp);
  qp.sends.release();
  qp.receives.release();
  qp.context->device->qps.release(qp.verbs.qp_num);
}

namespace device {

ibv_qp* create_qp(call& c, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing() || !c.given(attributes, "qp_init_attr")) return c.refuse_pointer();
  return create(c, *owner->context,
                {.type = attributes->qp_type,
                 .cap = &attributes->cap,
                 .qp_context = attributes->qp_context,
                 .pd = pd,
                 .send_cq = attributes->send_cq,
                 .recv_cq = attributes->recv_cq,
                 .srq = attributes->srq,
                 .signal_all = attributes->sq_sig_all != 0});
}

ibv_qp* create_qp_ex(call& c, ibv_context* context, ibv_qp_init_attr_ex* a) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(a, "qp_init_attr_ex")) return c.refuse_pointer();
  if (const int code = check_extended(*owner, *a)) return c.refuse_pointer(code);
  const auto has = [a](unsigned bit) noexcept { return (a->comp_mask & bit) != 0; };
  wanted w{.type = a->qp_type,
           .cap = &a->cap,
           .qp_context = a->qp_context,
           .pd = has(IBV_QP_INIT_ATTR_PD) ? a->pd : nullptr,
           .send_cq = a->send_cq,
           .recv_cq = a->recv_cq,
           .srq = a->srq,
           .signal_all = a->sq_sig_all != 0};
  if (has(IBV_QP_INIT_ATTR_XRCD)) w.xrcd = a->xrcd;
  if (has(IBV_QP_INIT_ATTR_IND_TABLE)) w.table = a->rwq_ind_tbl;
  if (has(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) w.operations = a->send_ops_flags;
  w.extended = owner->behaviour().always_extended_qp || has(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
  if (!w.pd && w.type != IBV_QPT_XRC_RECV) return c.refuse_pointer();
  return create(c, *owner, w);
}

ibv_qp* open_qp(call& c, ibv_context* context, ibv_qp_open_attr* attributes) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(attributes, "qp_open_attr")) return c.refuse_pointer();
  if (!owner->offers().xrc) return c.refuse_pointer(EOPNOTSUPP);
  constexpr unsigned needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  const unsigned mask = attributes->comp_mask;
  if ((mask & needed) != needed || (mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) != 0)
    return c.refuse_pointer();
  auto* xrcd = c.use<sim_xrcd>(attributes->xrcd);
  if (!xrcd) return c.refuse_pointer();
  sim_qp* shared = owner->device->qps.find_qp(attributes->qp_num);
  if (!shared || shared->verbs.qp_type != attributes->qp_type ||
      shared->verbs.qp_type != IBV_QPT_XRC_RECV || shared->xrc_domain != xrcd->domain)
    return c.refuse_pointer(EINVAL);
  auto made = std::make_shared<sim_qp>();
  made->context = owner;
  made->xrc_domain = xrcd->domain;
  made->original = shared;
  ++shared->users;
  ibv_qp& verbs = made->verbs;
  verbs.context = context;
  verbs.qp_context = (mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attributes->qp_context : nullptr;
  verbs.handle = handle_of(c);
  verbs.qp_num = shared->verbs.qp_num;
  verbs.qp_type = shared->verbs.qp_type;
  verbs.state = IBV_QPS_UNKNOWN;  // as libibverbs sets it
  record& object = record_object(c, made, &verbs, *owner->device,
                                 {c.record_of(context), c.record_of(attributes->xrcd)});
  // The queue pair itself lasts as long as one of its handles.
  c.state().objects.keep(object, *c.record_of(&shared->verbs));
  return &verbs;
}

int destroy_qp(call& c, ibv_qp* qp) {
  auto* ending = c.ending<sim_qp>(qp);
  if (!ending) return c.refuse_code();
  if (const int code = c.may_destroy(qp)) return code;
  sim_qp& itself = *ending->original;
  if (--itself.users == 0) {
    end_queue_pair(c.state(), itself);
    continue_waiting(c.state());  // requests to it get no response from now on
  }
  // A thread between ibv_wr_start and its end uses the queue pair without a look-up.
  if (ending->batch_open) c.state().objects.pin(*c.record_of(qp));
  drop_async_events(*ending->context, qp);
  wait_for_acks(c, *c.record_of(qp));
  c.retire(qp);
  return c.concluded();
}

ibv_qp_ex* qp_to_qp_ex(call& c, ibv_qp* qp) {
  auto* found = c.use<sim_qp>(qp);
  return found && found->is_extended ? &found->extended : nullptr;
}

}  // namespace device
}  // namespace ibvxx::shim
