#include "device/completion_queue.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "core/acknowledgements.hpp"
#include "core/own_calls.hpp"
#include "core/thread_watch.hpp"
#include "device/domain.hpp"
#include "device/events.hpp"
#include "device/object.hpp"
#include "device/polling.hpp"

namespace ibvxx::shim {
namespace {

/// What both creations check (create_cq of the kernel and of rxe; measured).
[[nodiscard]] int check_cq_sizes(const sim_context& owner, std::uint32_t cqe,
                                 std::uint32_t vector) noexcept {
  if (cqe < 1 || cqe > static_cast<std::uint32_t>(owner.limits().max_cqe)) return EINVAL;
  if (vector >= static_cast<std::uint32_t>(owner.verbs.context.num_comp_vectors)) return EINVAL;
  if (is_full(*owner.device, object_kind::cq, owner.limits().max_cq))
    return owner.behaviour().too_many_objects;
  return 0;
}

[[nodiscard]] std::shared_ptr<sim_cq> make_cq(const call& c, sim_context& owner, std::uint32_t cqe,
                                              std::uint32_t vector, void* cq_context,
                                              ibv_comp_channel* channel, sim_comp_channel* events) {
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

/// The details of a completion that Soft-RoCE's extended queues can read (rdma-core 44,
/// providers/rxe).
constexpr std::uint64_t soft_roce_details =
    IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
    IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL | IBV_WC_EX_WITH_DLID_PATH_BITS;

}  // namespace

void sim_comp_channel::close_descriptor() noexcept {
  if (const int open = std::exchange(verbs.fd, -1); open != -1) close_own(open);
}

namespace device {

int req_notify_cq(call& c, ibv_cq* cq, int solicited_only) {
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing()) return c.refuse_code();
  // A request for solicited completions does not narrow an earlier one for all (IBA 11.4.2.2).
  queue->armed_solicited_only =
      solicited_only != 0 && (!queue->armed || queue->armed_solicited_only);
  queue->armed = true;
  return c.concluded();
}

int modify_cq(call& c, ibv_cq* cq, ibv_modify_cq_attr* attributes) {
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing() || !c.given(attributes, "attr")) return c.refuse_code();
  if (!queue->context->offers().cq_moderation) return EOPNOTSUPP;
  return (attributes->attr_mask & ~unsigned{IBV_CQ_ATTR_MODERATE}) != 0 ? EINVAL : 0;
}

ibv_comp_channel* create_comp_channel(call& c, ibv_context* context) {
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

int destroy_comp_channel(call& c, ibv_comp_channel* channel) {
  auto* ending = c.ending<sim_comp_channel>(channel);
  if (!ending) return c.refuse_code();
  // No command to the kernel: libibverbs checks its own count, also after an unplug.
  if (c.lost(channel) && ending->verbs.refcnt != 0) return EBUSY;
  const int code = c.destroy(channel);
  if (code == 0) ending->close_descriptor();
  return c.concluded(code);
}

ibv_cq* create_cq(call& c, ibv_context* context, int cqe, void* cq_context,
                  ibv_comp_channel* channel, int comp_vector) {
  auto* owner = c.use<sim_context>(context);
  auto* events = channel ? c.use<sim_comp_channel>(channel) : nullptr;
  if (!owner || (channel && !events) || c.failing()) return c.refuse_pointer();
  // The kernel looks the descriptor up among those of this context (measured).
  if (events && events->context != owner) return c.refuse_pointer(EBADF);
  if (cqe < 1 || comp_vector < 0) return c.refuse_pointer();
  if (const int code = check_cq_sizes(*owner, static_cast<std::uint32_t>(cqe),
                                      static_cast<std::uint32_t>(comp_vector)))
    return c.refuse_pointer(code);
  auto made = make_cq(c, *owner, static_cast<std::uint32_t>(cqe),
                      static_cast<std::uint32_t>(comp_vector), cq_context, channel, events);
  record_object(c, made, &made->verbs, *owner->device,
                {c.record_of(context), c.record_of(channel)});
  return &made->verbs;
}

int resize_cq(call& c, ibv_cq* cq, int cqe) {
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing()) return c.refuse_code();
  // rxe_cq_chk_attr: the completions in the queue must still fit.
  if (cqe < 1 || cqe > queue->context->limits().max_cqe ||
      static_cast<std::size_t>(cqe) < queue->waiting())
    return call::from_kernel(EINVAL);
  cq->cqe = static_cast<int>(queue_capacity(static_cast<std::uint32_t>(cqe)));
  return c.concluded();
}

int destroy_cq(call& c, ibv_cq* cq) {
  auto* ending = c.ending<sim_cq>(cq);
  if (!ending) return c.refuse_code();
  const int code = c.may_destroy(cq);
  if (code != 0) return code;
  // The CQ stays in the ledger until every event is acknowledged: another thread may do so now.
  drop_events(*ending);
  drop_async_events(*ending->context, cq);
  wait_for_acks(c, *c.record_of(cq));
  // A thread that iterates reads the current completion without a look-up.
  if (ending->iterating) c.state().objects.pin(*c.record_of(cq));
  ending->entries = {};
  ending->held.clear();
  c.retire(cq);
  if (ending->channel) --ending->channel->verbs.refcnt;
  return c.concluded();
}

ibv_cq_ex* create_cq_ex(call& c, ibv_context* context, ibv_cq_init_attr_ex* attributes) {
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
    return owner->behaviour().unknown_cq_mask_sets_errno ? c.refuse_pointer(EINVAL) : nullptr;
  }
  const unsigned flags =
      (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attributes->flags : 0;
  if ((flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0 &&
      !owner->behaviour().cq_ignores_overrun_on_request)
    return c.refuse_pointer(EOPNOTSUPP);
  if (const int code = check_cq_sizes(*owner, attributes->cqe, attributes->comp_vector))
    return c.refuse_pointer(code);
  auto made = make_cq(c, *owner, attributes->cqe, attributes->comp_vector, attributes->cq_context,
                      channel, events);
  made->is_extended = true;
  made->ignores_overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
  made->single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  const void* thread_scope = domain ? domain->thread_scope : nullptr;
  if (made->single_threaded && !thread_scope) thread_scope = &made->verbs;
  if (thread_scope) watched_threads().turn(true);
  install_readers(*made, attributes->wc_flags);
  record_object(c, made, &made->verbs, *owner->device,
                {c.record_of(context), c.record_of(attributes->channel),
                 parent ? c.record_of(attributes->parent_domain) : nullptr})
      .thread_scope = thread_scope;
  return &made->extended;
}

}  // namespace device
}  // namespace ibvxx::shim
