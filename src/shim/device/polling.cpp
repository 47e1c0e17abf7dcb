#include "device/polling.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "core/engine.hpp"
#include "device/machine.hpp"
#include "device/queue_pair.hpp"

namespace ibvxx::shim {
namespace {

/// How long a thread waits for another's iteration before that is reported. A provider would wait
/// without limit.
constexpr std::chrono::milliseconds iteration_deadline{5000};

/// The iteration that this thread has open, so that the readers below need no look-up.
struct open_iteration {
  const ibv_cq_ex* handle = nullptr;
  sim_cq* queue = nullptr;
  std::uint64_t generation = 0;
};
thread_local open_iteration own_iteration;

/// Takes the next completion out, and frees the send slots that it gives back.
[[nodiscard]] bool take_completion(sim_cq& queue, completion& out) noexcept {
  if (queue.entries.empty()) return false;
  out = queue.entries.front();
  queue.entries.pop();
  if (out.qp) out.qp->slots_in_use -= std::min(out.qp->slots_in_use, out.gives_back);
  return true;
}

/// Waits until no other thread iterates. False, with a finding, if that does not happen.
[[nodiscard]] bool have_to_itself(call& c, sim_cq& queue) noexcept {
  if (!queue.iterating) return true;
  const bool own = queue.iterator == std::this_thread::get_id();
  if (queue.single_threaded) {
    if (!own)
      c.found(finding_kind::wrong_thread,
              c.here() + " on " + c.record_of(&queue.verbs)->title +
                  ", which was created for a single thread, in another's iteration",
              c.record_of(&queue.verbs));
    return true;
  }
  if (!own &&
      c.wait(machine_of(c.state()).released, iteration_deadline, [&] { return !queue.iterating; }))
    return true;
  c.found(finding_kind::unbalanced_batch,
          c.here() + " on " + c.record_of(&queue.verbs)->title + " while " +
              (own ? "the same thread has" : "another thread has had for seconds") +
              " an ibv_start_poll on it without the ibv_end_poll, for which a provider would wait "
              "for ever",
          c.record_of(&queue.verbs));
  return false;
}

void show(sim_cq& queue) noexcept {
  queue.extended.status = queue.current.wc.status;
  queue.extended.wr_id = queue.current.wc.wr_id;
}

/// Whether any thread has an iteration open. Adds a finding if none has, or if it is another
/// thread's.
[[nodiscard]] bool iterates(call& c, sim_cq& queue) noexcept {
  const record& object = *c.record_of(&queue.verbs);
  if (!queue.iterating) {
    c.found(finding_kind::unbalanced_batch,
            c.here() + " on " + object.title + " without an ibv_start_poll that returned 0",
            &object);
    return false;
  }
  if (queue.iterator != std::this_thread::get_id())
    c.found(finding_kind::wrong_thread,
            c.here() + " on " + object.title + " in an iteration that another thread has begun",
            &object);
  return true;
}

// The readers take no lock: between start and end the current completion is the thread's own.

/// The current completion of this thread's iteration. Without one, adds a finding and returns an
/// empty completion.
[[nodiscard, gnu::cold]] const completion& find_current(ibv_cq_ex* cq) noexcept {
  static const completion nothing{};
  call c(verb::next_poll, call::part::uncounted);
  auto* queue = c.use<sim_cq>(cq);
  if (!queue) return nothing;
  const record& object = *c.record_of(cq);
  if (queue->iterating && queue->iterator == std::this_thread::get_id()) {
    own_iteration = {cq, queue, engine::generation()};
    return queue->current;
  }
  c.found(queue->iterating ? finding_kind::wrong_thread : finding_kind::unbalanced_batch,
          "after call " + std::to_string(c.index()) + ", a completion of " + object.title +
              " was read " +
              (queue->iterating ? "in an iteration that another thread has begun"
                                : "without an ibv_start_poll that returned 0"),
          &object);
  return nothing;
}

[[nodiscard]] const completion& current_entry(ibv_cq_ex* cq) noexcept {
  // In a correct program only this thread ends its iteration.
  if (own_iteration.handle == cq && own_iteration.generation == engine::generation() &&
      own_iteration.queue->iterating) [[likely]]
    return own_iteration.queue->current;
  return find_current(cq);
}
const ibv_wc& current(ibv_cq_ex* cq) noexcept {
  return current_entry(cq).wc;
}

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) {
  return current(cq).opcode;
}
std::uint32_t read_vendor_err(ibv_cq_ex* cq) {
  return current(cq).vendor_err;
}
std::uint32_t read_byte_len(ibv_cq_ex* cq) {
  return current(cq).byte_len;
}
__be32 read_imm_data(ibv_cq_ex* cq) {
  return current(cq).imm_data;  // or the invalidated rkey: members of one union
}
std::uint32_t read_qp_num(ibv_cq_ex* cq) {
  return current(cq).qp_num;
}
std::uint32_t read_src_qp(ibv_cq_ex* cq) {
  return current(cq).src_qp;
}
unsigned read_wc_flags(ibv_cq_ex* cq) {
  return current(cq).wc_flags;
}
std::uint32_t read_slid(ibv_cq_ex* cq) {
  return current(cq).slid;
}
std::uint8_t read_sl(ibv_cq_ex* cq) {
  return current(cq).sl;
}
std::uint8_t read_dlid_path_bits(ibv_cq_ex* cq) {
  return current(cq).dlid_path_bits;
}
/// Time counts calls, not nanoseconds, so that every run of a program reads the same values.
std::uint64_t read_time(ibv_cq_ex* cq) {
  return current_entry(cq).time;
}
std::uint16_t read_cvlan(ibv_cq_ex*) {
  return 0;
}
std::uint32_t read_flow_tag(ibv_cq_ex*) {
  return 0;
}
void read_tm_info(ibv_cq_ex*, ibv_wc_tm_info* info) {
  *info = {};
}

}  // namespace

void install_readers(sim_cq& queue, std::uint64_t details) noexcept {
  ibv_cq_ex& cq = queue.extended;
  cq.read_opcode = &read_opcode;
  cq.read_vendor_err = &read_vendor_err;
  cq.read_wc_flags = &read_wc_flags;
  // A function that was not requested stays null, as with providers (measured).
  if ((details & IBV_WC_EX_WITH_BYTE_LEN) != 0) cq.read_byte_len = &read_byte_len;
  if ((details & IBV_WC_EX_WITH_IMM) != 0) cq.read_imm_data = &read_imm_data;
  if ((details & IBV_WC_EX_WITH_QP_NUM) != 0) cq.read_qp_num = &read_qp_num;
  if ((details & IBV_WC_EX_WITH_SRC_QP) != 0) cq.read_src_qp = &read_src_qp;
  if ((details & IBV_WC_EX_WITH_SLID) != 0) cq.read_slid = &read_slid;
  if ((details & IBV_WC_EX_WITH_SL) != 0) cq.read_sl = &read_sl;
  if ((details & IBV_WC_EX_WITH_DLID_PATH_BITS) != 0) cq.read_dlid_path_bits = &read_dlid_path_bits;
  if ((details & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0) cq.read_completion_ts = &read_time;
  if ((details & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0)
    cq.read_completion_wallclock_ns = &read_time;
  if ((details & IBV_WC_EX_WITH_CVLAN) != 0) cq.read_cvlan = &read_cvlan;
  if ((details & IBV_WC_EX_WITH_FLOW_TAG) != 0) cq.read_flow_tag = &read_flow_tag;
  if ((details & IBV_WC_EX_WITH_TM_INFO) != 0) cq.read_tm_info = &read_tm_info;
}

namespace device {

int poll_cq(call& c, ibv_cq* cq, int room, ibv_wc* out) {
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing() || (room > 0 && !c.given(out, "wc"))) return -1;
  if (!have_to_itself(c, *queue)) return -1;
  int taken = 0;
  completion one;
  for (; taken < room && take_completion(*queue, one); ++taken) out[taken] = one.wc;
  return taken;
}

int start_poll(call& c, ibv_cq_ex* cq, ibv_poll_cq_attr*) {
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing()) return c.refuse_code();
  if (!have_to_itself(c, *queue)) return EDEADLK;
  if (!take_completion(*queue, queue->current))
    return call::from_kernel(ENOENT);  // errno too (measured)
  queue->iterating = true;
  queue->iterator = std::this_thread::get_id();
  own_iteration = {cq, queue, engine::generation()};
  show(*queue);
  return 0;
}

int next_poll(call& c, ibv_cq_ex* cq) {
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || c.failing() || !iterates(c, *queue)) return c.refuse_code();
  if (!take_completion(*queue, queue->current))
    return call::from_kernel(ENOENT);  // errno too (measured)
  show(*queue);
  return 0;
}

void end_poll(call& c, ibv_cq_ex* cq) {
  auto* queue = c.use<sim_cq>(cq);
  if (!queue || !iterates(c, *queue)) return;
  queue->iterating = false;
  own_iteration = {};
  machine_of(c.state()).released.notify_all();
}

}  // namespace device
}  // namespace ibvxx::shim
