// Completion channels and completion queues.
#include <sys/eventfd.h>

#include <utility>

#include "interpose.hpp"
#include "sim_events.hpp"
#include "sim_objects.hpp"

namespace ibvxx::shim {
namespace {

int poll_cq(ibv_cq* cq, int, ibv_wc*) {
  call c(verb::poll_cq, cq);
  return c.use<sim_cq>(cq) && !c.failing() ? 0 : -1;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  call c(verb::req_notify_cq, cq);
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing()) return c.refuse_code();
  // Asking for every completion is not undone by asking for solicited ones (IBA 11.4.2.2).
  queue->armed_solicited_only =
      solicited_only != 0 && (!queue->armed || queue->armed_solicited_only);
  queue->armed = true;
  return 0;
}

}  // namespace

void install_completion_operations(ibv_context& context) noexcept {
  context.ops.poll_cq = &poll_cq;
  context.ops.req_notify_cq = &req_notify_cq;
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
  if (c.forwarded()) return forward<ibv_comp_channel*>("ibv_create_comp_channel", context);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_pointer();
  auto made = std::make_shared<sim_comp_channel>();
  made->context = owner;
  made->verbs.context = context;
  // A counting descriptor: readable while events wait, and one read takes one event.
  if ((made->verbs.fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) == -1) return nullptr;
  c.add(made, &made->verbs, owner->device->described.name, {c.record_of(context)});
  return &made->verbs;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  call c(verb::destroy_comp_channel, channel);
  if (c.forwarded()) return forward<int>("ibv_destroy_comp_channel", channel);
  auto* ending = c.ending<sim_comp_channel>(channel);
  if (!ending) return c.refuse_code();
  // No command to the kernel: libibverbs looks at its own count, also when the device is gone.
  if (c.lost(channel) && ending->verbs.refcnt != 0) return EBUSY;
  const int code = c.destroy(channel);
  if (code == 0) ending->close_descriptor();
  return code;
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                      int comp_vector) {
  call c(verb::create_cq, context);
  if (c.forwarded())
    return forward<ibv_cq*>("ibv_create_cq", context, cqe, cq_context, channel, comp_vector);
  auto* owner = c.use<sim_context>(context);
  auto* events = channel ? c.use<sim_comp_channel>(channel) : nullptr;
  if (!owner || (channel && !events) || c.failing()) return c.refuse_pointer();
  if (cqe < 1 || cqe > owner->device->described.limits.max_cqe) return c.refuse_pointer();
  if (comp_vector < 0 || comp_vector >= context->num_comp_vectors) return c.refuse_pointer();
  auto made = std::make_shared<sim_cq>();
  made->context = owner;
  made->verbs.context = context;
  made->verbs.channel = channel;
  made->channel = events;
  if (events) ++events->verbs.refcnt;
  made->verbs.cq_context = cq_context;
  made->verbs.handle = static_cast<std::uint32_t>(c.index());
  made->verbs.cqe = cqe;
  c.add(made, &made->verbs, owner->device->described.name,
        {c.record_of(context), c.record_of(channel)});
  return &made->verbs;
}

int ibv_destroy_cq(ibv_cq* cq) {
  call c(verb::destroy_cq, cq);
  if (c.forwarded()) return forward<int>("ibv_destroy_cq", cq);
  auto* ending = c.ending<sim_cq>(cq);
  if (!ending) return c.refuse_code();
  const int code = c.may_destroy(cq);
  if (code != 0) return code;
  // The queue stays known until every event is acknowledged: another thread may be about to.
  drop_events(*ending);
  settle(c, cq, ending->completion_events, "completion events");
  settle(c, cq, ending->async_events, "async events");
  c.retire(cq);
  if (ending->channel) --ending->channel->verbs.refcnt;
  return 0;
}

}  // extern "C"
