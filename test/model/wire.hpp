// The model's half for data: how each request must complete, worked out a second time,
// as simply as it can be said. Everything is numbers; nothing here calls a verb.
//
// It models Soft-RoCE's profile, RC, messages of one packet, and one rule that is the
// simulation's own: of several requests that wait, the one that has waited longest goes first.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "objects.hpp"

namespace ibvxx::model_test {

/// All memory of a program. Messages leave from the lower half and arrive in the upper one, so that
/// nothing is copied onto itself.
inline constexpr std::size_t arena_size = 4096;
inline constexpr std::uint32_t unknown_key = 0x7fffff01;

struct region {
  object_id id = none, pd = none;
  int device = 0;
  std::uint32_t key = 0;
  std::size_t offset = 0, length = 0;
  unsigned access = 0;
  int windows = 0;
};

struct window {
  object_id id = none, pd = none;
  int device = 0;
  std::uint32_t key = 0;     ///< in force
  object_id bound = none;    ///< to this region
  object_id through = none;  ///< by this queue pair
  std::size_t offset = 0, length = 0;
  unsigned access = 0;
};

/// A piece of the arena as a request names it.
struct piece {
  std::size_t offset = 0, length = 0;
  std::uint32_t key = 0;
};

struct receive {
  std::uint64_t wr_id = 0;
  std::vector<piece> pieces{};
};

struct send {
  std::uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  bool signaled = true;
  std::vector<piece> pieces{};
  std::size_t remote = 0;  ///< an offset in the arena
  std::uint32_t key = 0;   ///< of remote memory, or to be invalidated
  std::uint64_t add = 0;
  // binding
  object_id window = none, region = none;
  std::uint32_t new_key = 0;
  std::size_t length = 0;
  unsigned access = 0;

  [[nodiscard]] std::size_t total() const {
    std::size_t sum = 0;
    for (const piece& one : pieces) sum += one.length;
    return sum;
  }
};

struct completion {
  std::uint64_t wr_id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode = IBV_WC_SEND;
  std::size_t length = 0;  ///< where the opcode has one
  std::uint32_t qp_num = 0;
};

struct queue {
  object_id id = none, context = none;
  std::size_t capacity = 0;
  std::deque<completion> entries{};
  bool armed = false;
  bool has_channel = false;
  std::size_t events = 0;  ///< not read yet
};

struct shared_queue {
  object_id id = none, pd = none;
  std::size_t capacity = 0;
  std::deque<receive> receives{};
};

struct queue_pair {
  object_id id = none, pd = none, send_cq = none, recv_cq = none, srq = none;
  int device = 0;
  std::uint32_t number = 0;
  ibv_qp_state state = IBV_QPS_RESET;
  bool signal_all = false;
  std::size_t send_capacity = 0, recv_capacity = 0;
  unsigned access = 0;
  int peer_device = 0;
  std::uint32_t peer = 0;
  std::uint32_t next_sent = 0, next_expected = 0;
  bool waits_for_ever = false;  ///< rnr_retry 7, otherwise 0
  std::deque<send> sends{};
  std::deque<receive> receives{};
};

class wire {
 public:
  std::array<unsigned char, arena_size> arena{};
  std::map<object_id, region> regions{};
  std::map<object_id, window> windows{};
  std::map<object_id, queue> queues{};
  std::map<object_id, shared_queue> shared{};
  std::map<object_id, queue_pair> pairs{};
  bool port_up[2] = {true, true};
  /// CQ_ERR events that were raised, by the queue that they name.
  std::vector<object_id> overruns{};

  /// Takes a request, unless the queue is full: 0 or the errno.
  int post(queue_pair& qp, const send& request);
  int post(queue_pair& qp, const receive& request);
  int post(shared_queue& srq, const receive& request);
  /// To RESET or ERR, with what that does to the work.
  void enter(queue_pair& qp, ibv_qp_state state);
  void destroy_pair(object_id id);
  /// Takes what a window gives away.
  void unbind(window& one);
  /// Gives each waiting queue pair another try: after every step that may have changed something.
  void settle();

 private:
  enum class verdict { fine, unknown, outside, read_only };

  [[nodiscard]] const region* find_region(int device, std::uint32_t key) const;
  [[nodiscard]] verdict check_local(const queue_pair& qp, object_id pd,
                                    const std::vector<piece>& pieces, bool writable,
                                    std::size_t needed) const;
  [[nodiscard]] bool may_reach(const queue_pair& peer, const send& r, std::size_t length,
                               unsigned access) const;
  [[nodiscard]] queue_pair* peer_of(const queue_pair& qp);
  [[nodiscard]] std::deque<receive>* receives_of(queue_pair& qp);

  /// True where it is done with, well or not; false where it must wait.
  bool execute(queue_pair& qp, const send& r);
  bool carry(queue_pair& qp, queue_pair& peer, const send& r);
  bool deliver(queue_pair& qp, queue_pair& peer, const send& r);
  bool bind(queue_pair& qp, const send& r);
  bool invalidate(queue_pair& qp, const send& r);

  bool finish(queue_pair& qp, const send& r, ibv_wc_status status);
  void break_pair(queue_pair& qp);
  void flush_receives(queue_pair& qp);
  bool complete(object_id cq, const completion& one);
  void scatter(const std::vector<piece>& pieces, const std::vector<unsigned char>& bytes);
  [[nodiscard]] std::vector<unsigned char> gather(const std::vector<piece>& pieces) const;

  std::vector<object_id> waiting_{};
  object_id executing_ = none;  ///< whose first request is in progress
};

}  // namespace ibvxx::model_test
