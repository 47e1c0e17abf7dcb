#include "device/receive.hpp"

#include <cerrno>
#include <cstddef>
#include <memory>

#include "core/acknowledgements.hpp"
#include "core/request_list.hpp"
#include "device/completion_queue.hpp"
#include "device/domain.hpp"
#include "device/events.hpp"
#include "device/object.hpp"

namespace ibvxx::shim {
namespace {

/// rxe_srq_chk_init (measured): 0 requests and values above the limits are refused.
[[nodiscard]] int check_srq_sizes(const sim_context& context, const ibv_srq_attr& asked) noexcept {
  const ibv_device_attr& limits = context.limits();
  if (asked.max_wr == 0 || asked.max_wr > static_cast<std::uint32_t>(limits.max_srq_wr) ||
      asked.max_sge > static_cast<std::uint32_t>(limits.max_srq_sge))
    return EINVAL;
  if (is_full(*context.device, object_kind::srq, limits.max_srq))
    return context.behaviour().too_many_objects;
  return 0;
}

[[nodiscard]] std::shared_ptr<sim_srq> make_srq(const call& c, const sim_pd& pd, ibv_pd* handle,
                                                ibv_srq_attr& asked, void* srq_context) {
  if (asked.max_sge == 0) asked.max_sge = 1;  // the caller gets it back (measured)
  auto made = std::make_shared<sim_srq>();
  made->context = pd.context;
  made->receives.attach(*pd.context->device);
  made->domain = pd.domain;
  made->attr = asked;
  made->attr.max_wr = queue_capacity(asked.max_wr);  // a query returns it (measured)
  made->verbs.context = handle->context;
  made->verbs.srq_context = srq_context;
  made->verbs.pd = handle;
  made->verbs.handle = handle_of(c);
  return made;
}

}  // namespace

namespace device {

ibv_srq* create_srq_ex(call& c, ibv_context* context, ibv_srq_init_attr_ex* a) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(a, "srq_init_attr_ex")) return c.refuse_pointer();
  const device_features& offers = owner->offers();
  constexpr unsigned known = IBV_SRQ_INIT_ATTR_RESERVED - 1;
  if ((a->comp_mask & ~known) != 0) return c.refuse_pointer(EOPNOTSUPP);
  const auto has = [a](unsigned bit) noexcept { return (a->comp_mask & bit) != 0; };
  const ibv_srq_type type = has(IBV_SRQ_INIT_ATTR_TYPE) ? a->srq_type : IBV_SRQT_BASIC;
  // Soft-RoCE's driver refuses the other types, but the kernel refuses incomplete attributes
  // before (measured).
  if (type == IBV_SRQT_TM && !offers.tag_matching && has(IBV_SRQ_INIT_ATTR_CQ) &&
      has(IBV_SRQ_INIT_ATTR_TM))
    return c.refuse_pointer(EOPNOTSUPP);
  if (type == IBV_SRQT_XRC  ? !offers.xrc
      : type == IBV_SRQT_TM ? !offers.tag_matching
                            : type != IBV_SRQT_BASIC)
    return c.refuse_pointer(EINVAL);
  if (!has(IBV_SRQ_INIT_ATTR_PD)) return c.refuse_pointer(EINVAL);
  auto* pd = c.use<sim_pd>(a->pd);
  sim_xrcd* xrcd = nullptr;
  sim_cq* cq = nullptr;
  if (type == IBV_SRQT_XRC && !(has(IBV_SRQ_INIT_ATTR_XRCD) && (xrcd = c.use<sim_xrcd>(a->xrcd))))
    return c.refuse_pointer();
  if (type != IBV_SRQT_BASIC && !(has(IBV_SRQ_INIT_ATTR_CQ) && (cq = c.use<sim_cq>(a->cq))))
    return c.refuse_pointer();
  if (type == IBV_SRQT_TM &&
      !(has(IBV_SRQ_INIT_ATTR_TM) && a->tm_cap.max_num_tags != 0 && a->tm_cap.max_ops != 0))
    return c.refuse_pointer();
  if (!pd) return c.refuse_pointer();
  if (const int code = check_srq_sizes(*owner, a->attr)) return c.refuse_pointer(code);
  auto made = make_srq(c, *pd, a->pd, a->attr, a->srq_context);
  made->type = type;
  made->cq = cq;
  made->xrc_domain = xrcd ? xrcd->domain : nullptr;
  if (type != IBV_SRQT_BASIC) made->number = owner->device->srqs.take(made.get());
  record_object(c, made, &made->verbs, *owner->device,
                {c.record_of(a->pd), xrcd ? c.record_of(a->xrcd) : nullptr,
                 cq ? c.record_of(a->cq) : nullptr})
      .thread_scope = pd->thread_scope;
  return &made->verbs;
}

int get_srq_num(call& c, ibv_srq* srq, std::uint32_t* number) {
  auto* queue = c.use<sim_srq>(srq);
  if (!queue || c.failing() || !c.given(number, "srq_num")) return c.refuse_code();
  if (queue->number == 0) return EOPNOTSUPP;
  *number = queue->number;
  return 0;
}

int post_srq_ops(call& c, ibv_srq* srq, ibv_ops_wr* list, ibv_ops_wr** bad) {
  auto* queue = c.use<sim_srq>(srq);
  const auto refuse = [&](ibv_ops_wr* at, int code) {
    if (bad) *bad = at;
    return code;
  };
  if (!queue || c.failing()) return refuse(list, c.refuse_code());
  if (!queue->context->offers().tag_matching) return EOPNOTSUPP;  // bad stays untouched (measured)
  if (queue->type != IBV_SRQT_TM || refuse_endless(c, list)) return refuse(list, EINVAL);
  std::size_t place = 0;
  for (ibv_ops_wr* one = list; one; one = one->next) {
    if (c.refuses_request(++place)) return refuse(one, c.refusal_of_request());
    switch (one->opcode) {
      case IBV_WR_TAG_ADD:
        one->tm.handle = ++queue->tags;
        break;
      case IBV_WR_TAG_DEL:
        if (one->tm.handle == 0 || one->tm.handle > queue->tags) return refuse(one, EINVAL);
        break;
      case IBV_WR_TAG_SYNC:
        break;
      default:
        return refuse(one, EINVAL);
    }
  }
  return 0;
}

ibv_srq* create_srq(call& c, ibv_pd* pd, ibv_srq_init_attr* attributes) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing() || !c.given(attributes, "srq_init_attr")) return c.refuse_pointer();
  if (const int code = check_srq_sizes(*owner->context, attributes->attr))
    return c.refuse_pointer(code);
  auto made = make_srq(c, *owner, pd, attributes->attr, attributes->srq_context);
  record_object(c, made, &made->verbs, *owner->context->device, {c.record_of(pd)}).thread_scope =
      owner->thread_scope;
  return &made->verbs;
}

// rxe_srq_chk_attr (measured): the limit against the real size, the new size against the limit in
// force; unknown bits are ignored.
int modify_srq(call& c, ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  auto* queue = c.use<sim_srq>(srq);
  if (!queue || c.failing() || !c.given(attributes, "srq_attr")) return c.refuse_code();
  if ((mask & IBV_SRQ_MAX_WR) != 0) {
    const auto most = static_cast<std::uint32_t>(queue->context->limits().max_srq_wr);
    if (attributes->max_wr == 0 || attributes->max_wr > most ||
        attributes->max_wr < queue->attr.srq_limit)
      return call::from_kernel(EINVAL);
  }
  if ((mask & IBV_SRQ_LIMIT) != 0 && attributes->srq_limit > queue->attr.max_wr)
    return call::from_kernel(EINVAL);
  if ((mask & IBV_SRQ_MAX_WR) != 0) {
    const std::uint32_t capacity = queue_capacity(attributes->max_wr);
    if (capacity < queue->receives.size()) return call::from_kernel(EINVAL);
    queue->attr.max_wr = capacity;
  }
  if ((mask & IBV_SRQ_LIMIT) != 0) queue->attr.srq_limit = attributes->srq_limit;
  return c.concluded();
}

int query_srq(call& c, ibv_srq* srq, ibv_srq_attr* out) {
  auto* queue = c.use<sim_srq>(srq);
  if (!queue || c.failing() || !c.given(out, "srq_attr")) return c.refuse_code();
  *out = queue->attr;
  return 0;
}

int destroy_srq(call& c, ibv_srq* srq) {
  auto* ending = c.ending<sim_srq>(srq);
  if (!ending) return c.refuse_code();
  if (const int code = c.may_destroy(srq)) return code;
  drop_async_events(*ending->context, srq);
  wait_for_acks(c, *c.record_of(srq));
  ending->receives.release();
  c.retire(srq);
  if (ending->number != 0) ending->context->device->srqs.release(ending->number);
  return c.concluded();
}

}  // namespace device
}  // namespace ibvxx::shim
