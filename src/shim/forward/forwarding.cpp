#include "forward/forwarding.hpp"

#include <array>

#include "core/acknowledgements.hpp"
#include "core/verb_table.hpp"
#include "forward/recorded_verbs.hpp"

namespace ibvxx::shim {
namespace {

/// An object's context and its other parents, read from its fields.
struct descent {
  const ibv_context* context;
  std::array<const void*, 4> parents{};
};

[[nodiscard]] descent descent_of(object_kind kind, const void* made) noexcept {
  switch (kind) {
    case object_kind::context:
      return {static_cast<const ibv_context*>(made)};
    case object_kind::pd:
      return {static_cast<const ibv_pd*>(made)->context};
    case object_kind::mr: {
      const auto* mr = static_cast<const ibv_mr*>(made);
      return {mr->context, {mr->pd}};
    }
    case object_kind::comp_channel:
      return {static_cast<const ibv_comp_channel*>(made)->context};
    case object_kind::cq: {
      const auto* cq = static_cast<const ibv_cq*>(made);
      return {cq->context, {cq->channel}};
    }
    case object_kind::td:
      return {static_cast<const ibv_td*>(made)->context};
    case object_kind::xrcd:
      return {static_cast<const ibv_xrcd*>(made)->context};
    case object_kind::mw: {
      const auto* mw = static_cast<const ibv_mw*>(made);
      return {mw->context, {mw->pd}};
    }
    case object_kind::dm:
      return {static_cast<const ibv_dm*>(made)->context};
    case object_kind::qp: {
      const auto* qp = static_cast<const ibv_qp*>(made);
      return {qp->context, {qp->pd, qp->send_cq, qp->recv_cq, qp->srq}};
    }
    case object_kind::srq: {
      const auto* srq = static_cast<const ibv_srq*>(made);
      return {srq->context, {srq->pd}};
    }
    case object_kind::ah: {
      const auto* ah = static_cast<const ibv_ah*>(made);
      return {ah->context, {ah->pd}};
    }
    case object_kind::wq: {
      const auto* wq = static_cast<const ibv_wq*>(made);
      return {wq->context, {wq->pd, wq->cq}};
    }
    case object_kind::rwq_ind_table:
      return {static_cast<const ibv_rwq_ind_table*>(made)->context};
    case object_kind::flow:
      return {static_cast<const ibv_flow*>(made)->context};
    case object_kind::flow_action:
      return {static_cast<const ibv_flow_action*>(made)->context};
    case object_kind::counters:
      return {static_cast<const ibv_counters*>(made)->context};
    default:
      return {nullptr};
  }
}

}  // namespace

bool admit(call& c) {
  if (!c.is_seen()) return true;
  const verb_row& row = row_of(c.which());
  record* const subject = c.subject();
  const bool ends_subject = row.ending == ends::subject;
  if (row.has_subject) {
    if (!c.object()) {
      c.refuse_null("its object");
      return false;
    }
    if (subject && !subject->live) {
      c.refuse_handle(subject->kind, c.object(), subject, ends_subject);
      return false;
    }
  }
  if (c.failing()) {
    if (ends_subject && subject) subject->destroy_injected = true;
    return false;
  }
  if (!ends_subject || !subject) return true;
  if (subject->children != 0)
    c.found(finding_kind::destroyed_in_use,
            c.here() + " on " + subject->title + " while it is used by " +
                c.state().objects.children_of(*subject),
            subject);
  wait_for_acks(c, *subject);
  if (const auto missing = real::take_missing_acks(*subject);
      missing.completion_events + missing.async_events != 0) {
    const call::released running(c);
    real::acknowledge(missing);
  }
  return true;
}

void record_outcome(call& c, const void* made) noexcept {
  const verb_row& row = row_of(c.which());
  record* const subject = c.subject();
  if (!made) {
    if (row.ending == ends::subject && subject) c.retire(c.object());
    return;
  }
  if (!row.makes) return;
  const descent from = descent_of(*row.makes, made);
  const std::array<record*, 6> parents{
      row.has_subject ? subject : nullptr,
      *row.makes == object_kind::context || !from.context ? nullptr : c.record_of(from.context),
      c.record_of(from.parents[0]),
      c.record_of(from.parents[1]),
      c.record_of(from.parents[2]),
      c.record_of(from.parents[3])};
  c.state().objects.add(*row.makes, made, nullptr, from.context ? from.context->device->name : "",
                        c.which(), c.index(), parents);
}

}  // namespace ibvxx::shim
