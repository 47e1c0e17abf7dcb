#include "forwarding.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "interpose.hpp"
#include "sim_events.hpp"
#include "sim_queue_pair.hpp"
#include "verb_facts.hpp"

namespace ibvxx::shim {
namespace {

// The shim's operations outlast the session that put them in place, as long as their context or
// object is there; a new one at its address comes with operations of its own.
struct original_table {
  std::shared_mutex lock;
  std::unordered_map<const ibv_context*, std::unique_ptr<const verbs_context>> of;
  std::unordered_map<const void*, object_operations> of_objects;
};

original_table& originals() {
  static auto* table =
      new original_table;  // never destroyed: calls may come as long as the process lives
  return *table;
}

/// What an object says of itself: its context, and what else it was made from.
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

/// Verbs that are called on nothing that the ledger has.
[[nodiscard]] bool has_no_subject(verb v) noexcept {
  switch (v) {
    case verb::none:
    case verb::get_device_list:
    case verb::open_device:
    case verb::import_device:
    case verb::fork_init:
    case verb::is_fork_initialized:
    case verb::ack_async_event:
      return true;
    default:
      return false;
  }
}

/// The event by which an object's async events are acknowledged, whichever they were.
[[nodiscard]] ibv_async_event async_event_of(const record& object) noexcept {
  ibv_async_event event{};
  event.element.qp = static_cast<ibv_qp*>(const_cast<void*>(object.handle));
  event.event_type = object.kind == object_kind::cq    ? IBV_EVENT_CQ_ERR
                     : object.kind == object_kind::srq ? IBV_EVENT_SRQ_ERR
                     : object.kind == object_kind::wq  ? IBV_EVENT_WQ_FATAL
                                                       : IBV_EVENT_QP_FATAL;
  return event;
}

/// libibverbs waits in a destroy until all that was read is acknowledged. What nobody acknowledged
/// in time is a finding by now, and acknowledged here: the program is to end, not to hang.
void acknowledge_rest(record& object) noexcept {
  event_balance& completions = object.completion_events;
  if (completions.acknowledged < completions.read)
    call_real<void>("ibv_ack_cq_events", static_cast<ibv_cq*>(const_cast<void*>(object.handle)),
                    completions.read - completions.acknowledged);
  completions.acknowledged = completions.read;
  ibv_async_event event = async_event_of(object);
  for (; object.async_events.acknowledged < object.async_events.read;
       ++object.async_events.acknowledged)
    call_real<void>("ibv_ack_async_event", &event);
}

}  // namespace

const verbs_context& original_operations(const ibv_context& context) noexcept {
  original_table& table = originals();
  const std::shared_lock lock(table.lock);
  return *table.of.at(&context);
}

const object_operations& original_operations(const void* object) noexcept {
  original_table& table = originals();
  const std::shared_lock lock(table.lock);
  return table.of_objects.at(object);
}

void remember_operations(const void* object, const object_operations& operations) {
  original_table& table = originals();
  const std::unique_lock lock(table.lock);
  table.of_objects[object] = operations;
}

void intercept_operations(ibv_context& context) {
  verbs_context ours{};
  install_operations(ours);
  auto before = std::make_unique<verbs_context>();
  before->context.ops = context.ops;
  // The structure grows at its front: an older library's lacks the first operations.
  verbs_context* const extended = ::verbs_get_ctx(&context);
  constexpr std::size_t end = offsetof(verbs_context, _ABI_placeholder3);
  const std::size_t begin =
      extended ? sizeof(verbs_context) - std::min(extended->sz, sizeof(verbs_context)) : end;
  const auto replace = [](void* theirs, void* original, const void* replacement, std::size_t size) {
    using operation = void (*)();
    for (std::size_t at = 0; at < size; at += sizeof(operation)) {
      operation own = nullptr;
      std::memcpy(&own, static_cast<const std::byte*>(replacement) + at, sizeof own);
      operation* const slot = reinterpret_cast<operation*>(static_cast<std::byte*>(theirs) + at);
      std::memcpy(static_cast<std::byte*>(original) + at, slot, sizeof own);
      // A verb that the provider does not have stays one that it does not have.
      if (own && *slot) *slot = own;
    }
  };
  replace(&context.ops, &before->context.ops, &ours.context.ops, sizeof context.ops);
  if (extended)
    replace(reinterpret_cast<std::byte*>(extended) + begin,
            reinterpret_cast<std::byte*>(before.get()) + begin,
            reinterpret_cast<const std::byte*>(&ours) + begin, end - begin);
  original_table& table = originals();
  const std::unique_lock lock(table.lock);
  table.of[&context] = std::move(before);
}

int call::refuse_by_convention() const noexcept {
  switch (convention_of(verb_)) {
    case convention::errno_only:
      return refuse_minus_one();
    case convention::negative_code:
      return -refuse_code();
    default:
      break;
  }
  if (verb_ == verb::poll_cq) return -1;
  if (verb_ != verb::rereg_mr) return refuse_code();
  errno = refuse_code();
  return IBV_REREG_MR_ERR_CMD;
}

bool call::is_admitted() noexcept {
  if (!state_) return true;
  refused_ = true;
  const bool ends = ends_its_object(verb_);
  if (!has_no_subject(verb_)) {
    if (!object_) {
      refuse_null("its object");
      return false;
    }
    if (subject_ && !subject_->live) {
      refuse_handle(subject_->kind, object_, subject_, ends);
      return false;
    }
  }
  if (failing()) {
    if (ends && subject_) subject_->destroy_injected = true;
    return false;
  }
  refused_ = false;
  if (!ends || !subject_) return true;
  if (subject_->children != 0)
    found(finding_kind::destroyed_in_use,
          here() + " on " + subject_->title + " while it is used by " +
              state_->objects.children_of(*subject_),
          subject_);
  wait_for_acks(*this, *subject_);
  acknowledge_rest(*subject_);
  return true;
}

void call::moved_to(const void* object, const void* pd) noexcept {
  record* const moved = record_of(object);
  record* const to = record_of(pd);
  if (!moved || !to) return;
  for (record* const from : moved->parents) {
    if (from->kind != object_kind::pd) continue;
    state_->objects.adopt(*moved, *from, *to);
    return;
  }
}

void call::carried_out(const void* made) noexcept {
  if (!made) {
    if (!ends_its_object(verb_) || !subject_ || !subject_->live) return;
    subject_->destroyed_but_reported_failure = fault_.fails && fault_.after_effect;
    state_->objects.retire(*subject_, index_);
    return;
  }
  const auto kind = kind_made_by(verb_);
  if (!kind) return;
  const descent from = descent_of(*kind, made);
  const std::array<record*, 6> parents{
      has_no_subject(verb_) ? nullptr : subject_,
      *kind == object_kind::context || !from.context ? nullptr : record_of(from.context),
      record_of(from.parents[0]),
      record_of(from.parents[1]),
      record_of(from.parents[2]),
      record_of(from.parents[3])};
  state_->objects.add(*kind, made, nullptr, from.context ? from.context->device->name : "", verb_,
                      index_, parents);
}

void destroy_leftovers() {
  const engine::suppress_interception quiet;
  std::vector<std::pair<object_kind, void*>> left;
  {
    const auto seen = engine::lock_session();
    for (const record& object : seen.state.objects.records()) {
      if (!object.live) continue;
      acknowledge_rest(const_cast<record&>(object));
      left.emplace_back(object.kind, const_cast<void*>(object.handle));
    }
  }
  // The youngest first. What does not go stays: it is the body's, and told of.
  for (auto object = left.rbegin(); object != left.rend(); ++object) {
    void* const handle = object->second;
    switch (object->first) {
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
        const auto& member = *static_cast<const sim_multicast*>(handle);
        static_cast<void>(::ibv_detach_mcast(member.qp, &member.gid, member.lid));
        break;
      }
      case object_kind::descriptor:
        break;  // a failed close() has closed
    }
  }
}

}  // namespace ibvxx::shim
