// Completion channels and completion queues.
#include <sys/eventfd.h>

#include <climits>
#include <utility>

#include "interpose.hpp"
#include "sim_events.hpp"
#include "sim_objects.hpp"

namespace ibvxx::shim {
namespace {

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  call c(verb::req_notify_cq, cq);
  if (c.forwarded()) return forward(c, &ibv_context_ops::req_notify_cq, cq, solicited_only);
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing()) return c.refuse_code();
  // Asking for every completion is not undone by asking for solicited ones (IBA 11.4.2.2).
  queue->armed_solicited_only =
      solicited_only != 0 && (!queue->armed || queue->armed_solicited_only);
  queue->armed = true;
  return c.concluded();
}

/// What both creations check (create_cq of the kernel and of rxe; measured).
[[nodiscard]] int check_sizes(const sim_context& owner, std::uint32_t cqe,
                              std::uint32_t vector) noexcept {
  if (cqe < 1 || cqe > static_cast<std::uint32_t>(owner.limits().max_cqe)) return EINVAL;
  if (vector >= static_cast<std::uint32_t>(owner.verbs.context.num_comp_vectors)) return EINVAL;
  if (is_full(*owner.device, object_kind::cq, owner.limits().max_cq)) return owner.out_of_room();
  return 0;
}

[[nodiscard]] std::shared_ptr<sim_cq> make_queue(const call& c, sim_context& owner,
                                                 std::uint32_t cqe, std::uint32_t vector,
                                                 void* cq_context, ibv_comp_channel* channel,
                                                 sim_comp_channel* events) {
  auto made = std::make_shared<sim_cq>();
  made->context = &owner;
  made->verbs.context = &owner.verbs.context;
  made->verbs.channel = channel;
  made->channel = events;
  if (events) ++events->verbs.refcnt;
  made->verbs.cq_context = cq_context;
  made->verbs.handle = handle_of(c);
  made->verbs.cqe = static_cast<int>(queue_capacity(cqe));
  made->completion_vector = static_cast<int>(vector);
  return made;
}

/// What of a completion Soft-RoCE's extended queues can tell (rdma-core 44, providers/rxe).
constexpr std::uint64_t soft_roce_details =
    IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
    IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL | IBV_WC_EX_WITH_DLID_PATH_BITS;

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  call c(verb::create_cq_ex, context);
  if (c.forwarded()) {
    ibv_cq_ex* const real = forward(c, &verbs_context::create_cq_ex, context, attributes);
    if (real && c.is_seen()) intercept_polling(*real);
    return real;
  }
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(attributes, "cq_attr")) return c.refuse_pointer();
  ibv_comp_channel* channel = attributes->channel;
  auto* events = channel ? c.use<sim_comp_channel>(channel) : nullptr;
  if (channel && !events) return c.refuse_pointer();
  if (events && events->context != owner) return c.refuse_pointer(EBADF);
  const bool parent = (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
  const auto* domain = parent ? c.use<sim_pd>(attributes->parent_domain) : nullptr;
  if (parent && !domain) return c.refuse_pointer();
  const device_features& offers = owner->offers();
  const std::uint64_t details =
      offers.completion_details ? std::uint64_t{IBV_CREATE_CQ_SUP_WC_FLAGS} : soft_roce_details;
  if (!offers.extended_cqs || (attributes->wc_flags & ~details) != 0)
    return c.refuse_pointer(EOPNOTSUPP);
  constexpr unsigned known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  if ((attributes->comp_mask & ~known) != 0) {
    // Soft-RoCE's provider returns null and leaves errno as it is (measured).
    return owner->as_hardware() ? c.refuse_pointer(EINVAL) : nullptr;
  }
  const unsigned flags =
      (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attributes->flags : 0;
  if ((flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0 && !owner->as_hardware())
    return c.refuse_pointer(EOPNOTSUPP);
  if (const int code = check_sizes(*owner, attributes->cqe, attributes->comp_vector))
    return c.refuse_pointer(code);
  auto made = make_queue(c, *owner, attributes->cqe, attributes->comp_vector,
                         attributes->cq_context, channel, events);
  made->is_extended = true;
  made->ignores_overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
  made->single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  made->thread_scope = domain ? domain->thread_scope : nullptr;
  if (made->single_threaded && !made->thread_scope) made->thread_scope = &made->verbs;
  if (made->thread_scope) watched_threads().turn(true);
  install_polling(*made, attributes->wc_flags);
  record_object(c, made, &made->verbs, *owner->device,
                {c.record_of(context), c.record_of(attributes->channel),
                 parent ? c.record_of(attributes->parent_domain) : nullptr});
  return &made->extended;
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes) {
  call c(verb::modify_cq, cq);
  if (c.forwarded()) return forward(c, &verbs_context::modify_cq, cq, attributes);
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing() || !c.given(attributes, "attr")) return c.refuse_code();
  if (!queue->context->offers().cq_moderation) return EOPNOTSUPP;
  return (attributes->attr_mask & ~unsigned{IBV_CQ_ATTR_MODERATE}) != 0 ? EINVAL : 0;
}

}  // namespace

void install_completion_operations(verbs_context& context) noexcept {
  context.context.ops.req_notify_cq = &req_notify_cq;
  context.create_cq_ex = &create_cq_ex;
  context.modify_cq = &modify_cq;
}

void sim_comp_channel::close_descriptor() noexcept {
  if (const int open = std::exchange(verbs.fd, -1); open != -1) real::close(open);
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  call c(verb::create_comp_channel, context);
  if (c.forwarded()) return forward<ibv_comp_channel*>(c, "ibv_create_comp_channel", context);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_pointer();
  auto made = std::make_shared<sim_comp_channel>();
  made->context = owner;
  made->verbs.context = context;
  // A counting descriptor: readable while events wait, and one read takes one event.
  if ((made->verbs.fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) == -1) return nullptr;
  record_object(c, made, &made->verbs, *owner->device, {c.record_of(context)});
  return &made->verbs;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  call c(verb::destroy_comp_channel, channel);
  if (c.forwarded()) return forward<int>(c, "ibv_destroy_comp_channel", channel);
  auto* ending = c.ending<sim_comp_channel>(channel);
  if (!ending) return c.refuse_code();
  // No command to the kernel: libibverbs looks at its own count, also when the device is gone.
  if (c.lost(channel) && ending->verbs.refcnt != 0) return EBUSY;
  const int code = c.destroy(channel);
  if (code == 0) ending->close_descriptor();
  return c.concluded(code);
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int comp_vector) {
  call c(verb::create_cq, context);
  if (c.forwarded())
    return forward<ibv_cq*>(c, "ibv_create_cq", context, cqe, cq_context, channel, comp_vector);
  auto* owner = c.use<sim_context>(context);
  auto* events = channel ? c.use<sim_comp_channel>(channel) : nullptr;
  if (!owner || (channel && !events) || c.failing()) return c.refuse_pointer();
  // The kernel looks the descriptor up among those of this context (measured).
  if (events && events->context != owner) return c.refuse_pointer(EBADF);
  if (cqe < 1 || comp_vector < 0) return c.refuse_pointer();
  if (const int code = check_sizes(*owner, static_cast<std::uint32_t>(cqe),
                                   static_cast<std::uint32_t>(comp_vector)))
    return c.refuse_pointer(code);
  auto made = make_queue(c, *owner, static_cast<std::uint32_t>(cqe),
                         static_cast<std::uint32_t>(comp_vector), cq_context, channel, events);
  record_object(c, made, &made->verbs, *owner->device,
                {c.record_of(context), c.record_of(channel)});
  return &made->verbs;
}

int ibv_resize_cq(ibv_cq* cq, int cqe) {
  call c(verb::resize_cq, cq);
  if (c.forwarded()) return forward<int>(c, "ibv_resize_cq", cq, cqe);
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing()) return c.refuse_code();
  // rxe_cq_chk_attr: what is in the queue must still fit.
  if (cqe < 1 || cqe > queue->context->limits().max_cqe ||
      static_cast<std::size_t>(cqe) < queue->waiting())
    return call::from_kernel(EINVAL);
  cq->cqe = static_cast<int>(queue_capacity(static_cast<std::uint32_t>(cqe)));
  return c.concluded();
}

int ibv_destroy_cq(ibv_cq* cq) {
  call c(verb::destroy_cq, cq);
  if (c.forwarded()) return forward<int>(c, "ibv_destroy_cq", cq);
  auto* ending = c.ending<sim_cq>(cq);
  if (!ending) return c.refuse_code();
  const int code = c.may_destroy(cq);
  if (code != 0) return code;
  // The queue stays known until every event is acknowledged: another thread may be about to.
  drop_events(*ending);
  drop_async_events(*ending->context, cq);
  wait_for_acks(c, *c.record_of(cq));
  c.retire(cq);
  if (ending->channel) --ending->channel->verbs.refcnt;
  return c.concluded();
}

}  // extern "C"
