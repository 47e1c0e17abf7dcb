#include "device/misuse.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/data_path/wire.hpp"
#include "device/machine.hpp"
#include "device/posting.hpp"
#include "device/receive.hpp"

namespace ibvxx::shim {
namespace {

[[nodiscard]] std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

/// "[0x7f00, +64)".
[[nodiscard]] std::string range(std::uint64_t begin, std::uint64_t length) {
  return "[" + hex(begin) + ", +" + std::to_string(length) + ")";
}

[[nodiscard]] const char* state_name(ibv_qp_state state) noexcept {
  constexpr const char* names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  const auto i = static_cast<std::size_t>(state);
  return i < std::size(names) ? names[i] : "?";
}

[[nodiscard]] const record& record_of(const session_state& state, const void* handle) noexcept {
  return *state.objects.find(handle);
}

/// Calls `look` with each live object of a kind.
template <class Sim, class Look>
void for_each(const session_state& state, Look&& look) {
  for (const record& object : state.objects.live_of(Sim::kind))
    look(*static_cast<Sim*>(object.storage.get()), object);
}

[[nodiscard]] bool overlap(std::uint64_t a, std::uint64_t a_length, std::uint64_t b,
                           std::uint64_t b_length) noexcept {
  return a_length != 0 && b_length != 0 && a < b + b_length && b < a + a_length;
}

/// The latest destroyed region that had a key, or null.
[[nodiscard]] const record* former_owner(const session_state& state, const sim_device& device,
                                         std::uint32_t lkey) {
  const auto& gone = state.objects.destroyed();
  for (auto object = gone.rbegin(); object != gone.rend(); ++object) {
    if (object->kind != object_kind::mr) continue;
    const auto* region = static_cast<const sim_mr*>(object->storage.get());
    if (region->context->device.get() == &device && region->verbs.lkey == lkey) return &*object;
  }
  return nullptr;
}

/// The mistake in one SGE as the end of a sentence; empty if there is none.
[[nodiscard]] std::string fault_of(const session_state& state, sim_device& device,
                                   const void* domain, const ibv_sge& one, bool writable,
                                   const record*& about) {
  const key_entry* entry = device.keys.find_key(one.lkey);
  if (!entry || !entry->mr) {
    about = former_owner(state, device, one.lkey);
    const std::string names = "names lkey " + hex(one.lkey) + ", which ";
    if (about)
      return names + "was " + about->title + "'s, destroyed by call " +
             std::to_string(about->gone_by);
    return names + "belongs to no region";
  }
  const sim_mr& region = *entry->mr;
  about = &record_of(state, &region.verbs);
  if (domain && region.domain != domain)
    return "names " + about->title + ", which is in another protection domain";
  if (writable && (region.access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return "is to be written, and " + about->title + " has no IBV_ACCESS_LOCAL_WRITE";
  if (one.addr < region.iova || one.addr - region.iova > region.length ||
      one.length > region.length - (one.addr - region.iova))
    return "names bytes " + range(one.addr, one.length) + ", which are not all in " + about->title +
           "'s " + range(region.iova, region.length);
  return {};
}

void find_wrong_entries(call& c, const record& queue, sim_device& device, const void* domain,
                        std::span<const ibv_sge> sges, std::uint64_t wr_id, bool writable,
                        std::uint64_t length) {
  for (std::size_t i = 0; i < sges.size() && length != 0; ++i) {
    if (sges[i].length == 0) continue;
    length -= std::min<std::uint64_t>(length, sges[i].length);
    const record* about = nullptr;
    const std::string what = fault_of(c.state(), device, domain, sges[i], writable, about);
    if (!what.empty())
      c.found(finding_kind::wrong_memory,
              c.here() + " on " + queue.title + ": SGE " + std::to_string(i) +
                  " of the request with wr_id " + std::to_string(wr_id) + " " + what,
              about);
  }
}

/// How many requests of a queue meet a condition on their entries, and the first of them.
struct tally {
  std::size_t count = 0;
  std::uint64_t first = 0;
  void add(std::uint64_t wr_id) noexcept {
    if (count++ == 0) first = wr_id;
  }
};

/// Whether a request in a queue names the region, in constant time.
[[nodiscard]] bool is_named(const sim_mr& region) noexcept {
  return region.context->device->keys.is_referred_to(region.verbs.lkey >> 8);
}

/// The requests that name memory, by queue: "2 sends of QP#1 of sim0 (the first with wr_id 7)".
/// Costs: linear in the queues and their requests.
template <class Names>
[[nodiscard]] std::string requests_that_name(const session_state& state, Names&& names) {
  std::string list;
  const auto list_up = [&list](const tally& t, const char* what, const record& queue) {
    if (t.count == 0) return;
    list += (list.empty() ? "" : ", ") + std::to_string(t.count) + " " + what + " of " +
            queue.title + " (the first with wr_id " + std::to_string(t.first) + ")";
  };
  const auto any = [&names](const std::vector<ibv_sge>& sges) {
    return std::any_of(sges.begin(), sges.end(), names);
  };
  const auto count = [&any](request_queue<receive_request>& queue) {
    tally t;
    for (std::size_t i = 0; i < queue.size(); ++i)
      if (any(queue[i].sges)) t.add(queue[i].wr_id);
    return t;
  };
  for_each<sim_qp>(state, [&](sim_qp& qp, const record& object) {
    tally sends;
    for (std::size_t i = 0; i < qp.sends.size(); ++i) {
      const queued_send& one = qp.sends[i];
      if ((one.request.flags & IBV_SEND_INLINE) == 0 && any(one.sges)) sends.add(one.request.wr_id);
    }
    list_up(sends, "queued send(s)", object);
    list_up(count(qp.receives), "posted receive(s)", object);
  });
  for_each<sim_srq>(state, [&](sim_srq& srq, const record& object) {
    list_up(count(srq.receives), "posted receive(s)", object);
  });
  return list;
}

}  // namespace

void find_wrong_state(call& c, const sim_qp& qp, bool receives) {
  const ibv_qp_state now = qp.state();
  std::string why;
  if (receives) {
    if (qp.srq)
      why = "which has no receive queue of its own: its receives are those of " +
            record_of(c.state(), &qp.srq->verbs).title;
    else if (now == IBV_QPS_RESET)
      why = "which takes no receives before INIT";
    else if (now == IBV_QPS_ERR && !qp.context->behaviour().flushes_receives_posted_in_error)
      why = "where this device does not complete receives";
  } else if (qp.verbs.qp_type == IBV_QPT_XRC_RECV) {
    why = "which only receives";
  } else if (check_sending(qp) != 0) {
    why = "which takes no sends before RTS";
  }
  if (why.empty()) return;
  const record& object = record_of(c.state(), &qp.verbs);
  c.found(finding_kind::wrong_state,
          c.here() + " on " + object.title + " in state " + state_name(now) + ", " + why, &object);
}

void find_wrong_memory(call& c, const sim_qp& qp, const send_request& request) {
  if ((request.flags & IBV_SEND_INLINE) != 0) return;
  const bool atomic = is_atomic(request.opcode);
  find_wrong_entries(c, record_of(c.state(), &qp.verbs), *qp.context->device, qp.domain,
                     {request.sges, request.sge_count}, request.wr_id,
                     atomic || request.opcode == IBV_WR_RDMA_READ,
                     atomic ? sizeof(std::uint64_t) : UINT64_MAX);
}

void find_wrong_memory(call& c, const record& queue, sim_device& device, const void* domain,
                       const receive_request& posted) {
  find_wrong_entries(c, queue, device, domain, posted.sges, posted.wr_id, true, UINT64_MAX);
}

void find_reused_buffer(call& c, const record& queue, const receive_request& posted) {
  for (const ibv_sge& one : posted.sges)
    if (machine_of(c.state()).posted.for_each_overlap(
            one.addr, end_of(one), [&](const posted_buffer& other) {
              c.found(finding_kind::buffer_reused,
                      c.here() + " on " + queue.title + ": the receive with wr_id " +
                          std::to_string(posted.wr_id) + " has bytes that the one with wr_id " +
                          std::to_string(other.wr_id) + ", still posted to " + other.queue->title +
                          ", has too: the later message overwrites the earlier",
                      &queue);
              return true;
            }))
      return;
}

void find_undersized_queue(session_state& state, sim_cq& cq, const ibv_wc& lost) {
  if (std::exchange(cq.overrun_reported, true)) return;
  constexpr std::size_t most_named = 16;
  std::size_t count = 0;
  std::uint64_t most = 0;
  std::string queues;
  const record& object = record_of(state, &cq.verbs);
  for (const parent_link* link = object.first_child; link; link = link->next) {
    if (link->child->kind != object_kind::qp) continue;
    const auto& qp = *static_cast<const sim_qp*>(link->child->storage.get());
    const std::uint64_t sends = qp.send_cq == &cq ? qp.cap.max_send_wr : 0;
    const std::uint64_t own = qp.srq ? qp.srq->attr.max_wr : qp.cap.max_recv_wr;
    const std::uint64_t receives = qp.recv_cq == &cq ? own : 0;
    if (sends + receives == 0) continue;
    most += sends + receives;
    if (++count <= most_named) queues += (queues.empty() ? "" : ", ") + link->child->title;
  }
  if (count > most_named) queues += " and " + std::to_string(count - most_named) + " more";
  state.findings.add(finding_kind::undersized_cq,
                     object.title + ", " + origin(object) + " with " +
                         std::to_string(cq.verbs.cqe) + " entries, was full when call " +
                         std::to_string(state.calls) + " completed the request with wr_id " +
                         std::to_string(lost.wr_id) + ": its queues (" + queues + ") can have " +
                         std::to_string(most) + " outstanding",
                     &object);
}

void find_memory_in_use(call& c, const sim_mr& region) {
  if (!is_named(region)) return;
  const std::string users = requests_that_name(
      c.state(), [&region](const ibv_sge& one) { return one.lkey == region.verbs.lkey; });
  if (users.empty()) return;
  const record& object = record_of(c.state(), &region.verbs);
  c.found(
      finding_kind::memory_in_use,
      c.here() + " of " + object.title + ", " + origin(object) + ", while " + users + " name it",
      &object);
}

void find_freed_memory(const void* address, std::size_t length, const char* how) {
  call c(verb::none, call::part::uncounted);
  if (!c.is_seen() || c.state().forwards()) return;
  const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uint64_t end = begin + length;
  machine_of(c.state()).regions.for_each_overlap(begin, end, [&](sim_mr* region) {
    const std::uint64_t own = reinterpret_cast<std::uintptr_t>(region->bytes);
    // In the region's address space, which requests use.
    const std::uint64_t first = std::max(begin, own) - own + region->iova;
    const std::uint64_t last = std::min(end, own + region->length) - own + region->iova;
    region->forgotten.add(first, last);
    if (!is_named(*region)) return false;
    const std::string users = requests_that_name(c.state(), [&](const ibv_sge& one) {
      return one.lkey == region->verbs.lkey && overlap(one.addr, one.length, first, last - first);
    });
    if (users.empty()) return false;
    const record& object = record_of(c.state(), &region->verbs);
    c.found(finding_kind::memory_in_use,
            "after call " + std::to_string(c.index()) + ", " + how + " of bytes " +
                range(begin, length) + ", which are " + object.title + "'s, " + origin(object) +
                ", while " + users + " name them",
            &object);
    return false;
  });
}

void find_use_of_forgotten(sim_mr& region) noexcept {
  if (std::exchange(region.forgotten_reported, true)) return;
  session_state& state = *engine::current_or_none();
  const record& object = record_of(state, &region.verbs);
  state.findings.add(finding_kind::memory_in_use,
                     "call " + std::to_string(state.calls) + " carried data of " + object.title +
                         ", " + origin(object) +
                         ", to or from bytes that the program has freed or unmapped",
                     &object);
}

}  // namespace ibvxx::shim
