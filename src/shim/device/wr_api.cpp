#include "device/wr_api.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "core/engine.hpp"
#include "device/address.hpp"
#include "device/data_path/send_queue.hpp"
#include "device/machine.hpp"
#include "device/memory.hpp"
#include "device/memory_window.hpp"
#include "device/misuse.hpp"
#include "device/posting.hpp"

namespace ibvxx::shim {
namespace {

/// How long ibv_wr_start waits for another thread's batch before that is reported.
constexpr std::chrono::milliseconds batch_deadline{5000};

/// The batch that this thread has open, so that the functions below need no look-up.
struct open_batch {
  const ibv_qp_ex* handle = nullptr;
  sim_qp* qp = nullptr;
  std::uint64_t generation = 0;
};
thread_local open_batch own_batch;

/// The queue pair of a batch that is this thread's; otherwise adds a finding and returns null.
[[nodiscard, gnu::cold]] sim_qp* find_batch(ibv_qp_ex* handle) noexcept {
  call c(verb::wr_start, call::part::uncounted);
  auto* qp = c.use<sim_qp>(handle);
  if (!qp) return nullptr;
  const record& object = *c.record_of(handle);
  if (!qp->batch_open) {
    c.found(finding_kind::unbalanced_batch,
            "after call " + std::to_string(c.index()) + ", a request was built on " + object.title +
                " without an ibv_wr_start",
            &object);
    return nullptr;
  }
  if (qp->batch_owner != std::this_thread::get_id()) {
    c.found(finding_kind::wrong_thread,
            "after call " + std::to_string(c.index()) + ", a request was built on " + object.title +
                " in a batch that another thread has begun",
            &object);
    return nullptr;
  }
  own_batch = {handle, qp, engine::generation()};
  return qp;
}

[[nodiscard]] sim_qp* batch_of(ibv_qp_ex* handle) noexcept {
  // In a correct program only this thread ends its batch.
  if (own_batch.handle == handle && own_batch.generation == engine::generation() &&
      own_batch.qp->batch_open) [[likely]]
    return own_batch.qp;
  return find_batch(handle);
}

/// The first error of a batch stays; wr_complete returns it.
void spoil(sim_qp& qp, int code) noexcept {
  if (qp.batch_error == 0) qp.batch_error = code;
}

/// A new request of the batch, or null where there is no slot for it. Between wr_start and its end
/// the batch is the thread's own: no lock.
[[nodiscard]] send_request* begin(ibv_qp_ex* handle, ibv_wr_opcode opcode) noexcept {
  sim_qp* const batch = batch_of(handle);
  if (!batch) return nullptr;
  sim_qp& qp = *batch;
  if (qp.batch_size >= qp.batch_room) {
    spoil(qp, qp.context->behaviour().batch_does_not_fit);
    return nullptr;
  }
  const engine::suppress_interception quiet;
  if (qp.batch_size == qp.batch.size()) qp.batch.emplace_back();
  queued_send& slot = qp.batch[qp.batch_size++];
  slot.request = send_request{};
  slot.sges.clear();
  slot.inline_data.clear();
  slot.request.wr_id = handle->wr_id;
  slot.request.opcode = opcode;
  slot.request.flags = handle->wr_flags & ~unsigned{IBV_SEND_INLINE};
  return &slot.request;
}

/// The request that a setter changes. Empty if none was begun, or if the batch has an error.
struct subject {
  sim_qp* qp = nullptr;
  queued_send* slot = nullptr;
  [[nodiscard]] explicit operator bool() const noexcept { return slot; }
  [[nodiscard]] send_request& request() const noexcept { return slot->request; }
};
[[nodiscard]] subject latest(ibv_qp_ex* handle) noexcept {
  sim_qp* const qp = batch_of(handle);
  if (!qp) return {};
  if (qp->batch_size == 0) spoil(*qp, EINVAL);
  return {qp, qp->batch_error == 0 ? &qp->batch[qp->batch_size - 1] : nullptr};
}

void begin_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey,
                std::uint64_t address) noexcept {
  if (send_request* request = begin(qp, opcode)) {
    request->rkey = rkey;
    request->remote_address = address;
  }
}

void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  begin_rdma(qp, IBV_WR_RDMA_WRITE, rkey, address);
}
void wr_rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  begin_rdma(qp, IBV_WR_RDMA_READ, rkey, address);
}
void wr_rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, __be32 data) {
  if (send_request* request = begin(qp, IBV_WR_RDMA_WRITE_WITH_IMM)) {
    request->rkey = rkey;
    request->remote_address = address;
    request->immediate = data;
  }
}
void wr_send(ibv_qp_ex* qp) {
  static_cast<void>(begin(qp, IBV_WR_SEND));
}
void wr_send_imm(ibv_qp_ex* qp, __be32 data) {
  if (send_request* request = begin(qp, IBV_WR_SEND_WITH_IMM)) request->immediate = data;
}
void wr_send_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
  if (send_request* request = begin(qp, IBV_WR_SEND_WITH_INV)) request->immediate = rkey;
}
void wr_local_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
  if (send_request* request = begin(qp, IBV_WR_LOCAL_INV)) request->immediate = rkey;
}
void wr_atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                       std::uint64_t compare, std::uint64_t swap) {
  begin_rdma(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address);
  if (const subject one = latest(qp)) {
    one.request().compare_or_add = compare;
    one.request().swap = swap;
  }
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                         std::uint64_t add) {
  begin_rdma(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address);
  if (const subject one = latest(qp)) one.request().compare_or_add = add;
}

/// Not in every verbs.h. No device carries the request out, so it fails.
template <class Extended>
void install_atomic_write(Extended& qp) noexcept {
  if constexpr (requires { qp.wr_atomic_write; })
    qp.wr_atomic_write = [](ibv_qp_ex* handle, std::uint32_t rkey, std::uint64_t address,
                            const void*) {
      constexpr int atomic_write = 15;  // IBV_WR_ATOMIC_WRITE
      begin_rdma(handle, static_cast<ibv_wr_opcode>(atomic_write), rkey, address);
    };
}

/// Looks up an object, under the engine's lock. Not counted as a call: ibv_wr_start and the end of
/// the batch are.
template <class Sim>
[[nodiscard]] Sim* look_up_object(const void* handle) noexcept {
  call c(verb::wr_start, call::part::uncounted);
  return c.use<Sim>(handle);
}
/// An argument that providers dereference: false, with a finding, if it is null.
[[nodiscard]] bool given(const void* argument, const char* name) noexcept {
  if (argument) [[likely]]
    return true;
  call c(verb::wr_start, call::part::uncounted);
  return c.given(argument, name);
}

void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  auto* window = look_up_object<sim_mw>(mw);
  const bool known = given(info, "bind_info");
  auto* region = known && info->mr ? look_up_object<sim_mr>(info->mr) : nullptr;
  send_request* request = begin(qp, IBV_WR_BIND_MW);
  if (!request) return;
  if (!window || !known || (info->mr && !region)) return spoil(*own_batch.qp, EINVAL);
  request->window = window;
  request->region = region;
  request->region_key = region ? region->verbs.lkey : 0;
  request->window_key = mw->rkey;
  request->new_key = rkey;
  request->window_address = info->addr;
  request->window_length = info->length;
  request->window_access = info->mw_access_flags;
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t remote_qp, std::uint32_t qkey) {
  auto* address = look_up_object<sim_ah>(ah);
  const subject one = latest(qp);
  if (!one) return;
  if (!address) return spoil(*one.qp, EINVAL);
  one.request().address = address->attr;
  one.request().remote_qp = remote_qp;
  one.request().remote_qkey = qkey;
}
void wr_set_xrc_srqn(ibv_qp_ex* qp, std::uint32_t number) {
  if (const subject one = latest(qp)) one.request().remote_srq = number;
}

void wr_set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  const subject one = latest(qp);
  if (!one) return;
  if (count > one.qp->cap.max_send_sge)
    return spoil(*one.qp, one.qp->context->behaviour().batch_does_not_fit);
  if (count != 0 && !given(list, "sg_list")) return spoil(*one.qp, EINVAL);
  const engine::suppress_interception quiet;
  one.slot->sges.assign(list, list + count);
}
void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  const ibv_sge one{address, length, lkey};
  wr_set_sge_list(qp, 1, &one);
}

void wr_set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  const subject one = latest(qp);
  if (!one) return;
  if (count != 0 && !given(list, "buf_list")) return spoil(*one.qp, EINVAL);
  std::vector<std::byte>& data = one.slot->inline_data;
  data.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (list[i].length > one.qp->cap.max_inline_data - data.size())
      return spoil(*one.qp, one.qp->context->behaviour().batch_does_not_fit);
    if (list[i].length == 0) continue;
    if (!given(list[i].addr, "inline data")) return spoil(*one.qp, EINVAL);
    const engine::suppress_interception quiet;
    const auto* bytes = static_cast<const std::byte*>(list[i].addr);
    data.insert(data.end(), bytes, bytes + list[i].length);
  }
  one.request().flags |= IBV_SEND_INLINE;
}
void wr_set_inline_data(ibv_qp_ex* qp, void* bytes, std::size_t length) {
  const ibv_data_buf one{bytes, length};
  wr_set_inline_data_list(qp, 1, &one);
}

/// Whether there is a batch to end; another thread's is ended as well.
[[nodiscard]] bool is_open(call& c, sim_qp& qp) noexcept {
  const record& object = *c.record_of(&qp.verbs);
  if (!qp.batch_open) {
    c.found(finding_kind::unbalanced_batch,
            c.here() + " on " + object.title + " without an ibv_wr_start", &object);
    return false;
  }
  if (qp.batch_owner != std::this_thread::get_id())
    c.found(finding_kind::wrong_thread,
            c.here() + " on " + object.title + " ended a batch that another thread has begun",
            &object);
  own_batch = {};
  return true;
}

/// Completes the device's form of a request: SGEs, or inline data, and the length.
void finish(queued_send& slot) noexcept {
  send_request& request = slot.request;
  if ((request.flags & IBV_SEND_INLINE) != 0)
    slot.sges.assign(1, {reinterpret_cast<std::uintptr_t>(slot.inline_data.data()),
                         static_cast<std::uint32_t>(slot.inline_data.size()), 0});
  request.sges = slot.sges.data();
  request.sge_count = static_cast<std::uint32_t>(slot.sges.size());
  request.length = 0;
  for (const ibv_sge& one : slot.sges) request.length += one.length;
}

}  // namespace

void install_builders(sim_qp& made, std::uint64_t operations) noexcept {
  ibv_qp_ex& qp = made.extended;
  const auto asked = [operations](std::uint64_t bit) noexcept { return (operations & bit) != 0; };
  // A function that was not requested stays null, as with providers (measured).
  if (asked(IBV_QP_EX_WITH_RDMA_WRITE)) qp.wr_rdma_write = &wr_rdma_write;
  if (asked(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)) qp.wr_rdma_write_imm = &wr_rdma_write_imm;
  if (asked(IBV_QP_EX_WITH_SEND)) qp.wr_send = &wr_send;
  if (asked(IBV_QP_EX_WITH_SEND_WITH_IMM)) qp.wr_send_imm = &wr_send_imm;
  if (asked(IBV_QP_EX_WITH_RDMA_READ)) qp.wr_rdma_read = &wr_rdma_read;
  if (asked(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)) qp.wr_atomic_cmp_swp = &wr_atomic_cmp_swp;
  if (asked(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)) qp.wr_atomic_fetch_add = &wr_atomic_fetch_add;
  if (asked(IBV_QP_EX_WITH_LOCAL_INV)) qp.wr_local_inv = &wr_local_inv;
  if (asked(IBV_QP_EX_WITH_BIND_MW)) qp.wr_bind_mw = &wr_bind_mw;
  if (asked(IBV_QP_EX_WITH_SEND_WITH_INV)) qp.wr_send_inv = &wr_send_inv;
  if (asked(1U << 12)) install_atomic_write(qp);  // IBV_QP_EX_WITH_ATOMIC_WRITE
  qp.wr_set_ud_addr = &wr_set_ud_addr;
  if (made.xrc_domain || made.context->offers().xrc) qp.wr_set_xrc_srqn = &wr_set_xrc_srqn;
  qp.wr_set_inline_data = &wr_set_inline_data;
  qp.wr_set_inline_data_list = &wr_set_inline_data_list;
  qp.wr_set_sge = &wr_set_sge;
  qp.wr_set_sge_list = &wr_set_sge_list;
}

namespace device {

void wr_start(call& c, ibv_qp_ex* handle) {
  auto* qp = c.use<sim_qp>(handle);
  if (!qp) return;
  const bool own = qp->batch_open && qp->batch_owner == std::this_thread::get_id();
  if (own || (qp->batch_open && !c.wait(machine_of(c.state()).released, batch_deadline,
                                        [qp] { return !qp->batch_open; })))
    c.found(finding_kind::unbalanced_batch,
            c.here() + " on " + c.record_of(handle)->title + " while " +
                (own ? "the same thread has" : "another thread has had for seconds") +
                " a batch open, and a provider would wait for its end for ever",
            c.record_of(handle));
  qp->batch_open = true;
  qp->batch_owner = std::this_thread::get_id();
  qp->batch_size = 0;
  qp->batch_error = 0;
  qp->batch_room = send_slots_left(*qp);
  own_batch = {handle, qp, engine::generation()};
}

void wr_abort(call& c, ibv_qp_ex* handle) {
  auto* qp = c.use<sim_qp>(handle);
  if (!qp || !is_open(c, *qp)) return;
  qp->batch_open = false;
  machine_of(c.state()).released.notify_all();
}

int wr_complete(call& c, ibv_qp_ex* handle) {
  auto* qp = c.use<sim_qp>(handle);
  if (!qp || !is_open(c, *qp)) return c.refuse_code();
  qp->batch_open = false;
  machine_of(c.state()).released.notify_all();
  int code = c.failing() ? c.refuse_code() : qp->batch_error;
  const bool strict = c.state().strict && code == 0;
  if (strict) find_wrong_state(c, *qp, false);
  if (code == 0) code = check_sending(*qp);
  for (std::size_t i = 0; i < qp->batch_size && code == 0; ++i) {
    finish(qp->batch[i]);
    if (strict) find_wrong_memory(c, *qp, qp->batch[i].request);
    submit(c.state(), *qp, qp->batch[i].request);
  }
  continue_waiting(c.state());
  return code;
}

}  // namespace device
}  // namespace ibvxx::shim
