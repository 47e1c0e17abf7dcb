// Completion channels and completion queues.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>

#include "core/call.hpp"
#include "device/context.hpp"
#include "device/ring.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

struct sim_cq;

struct sim_comp_channel {
  static constexpr object_kind kind = object_kind::comp_channel;

  sim_comp_channel() = default;
  sim_comp_channel(const sim_comp_channel&) = delete;
  sim_comp_channel& operator=(const sim_comp_channel&) = delete;
  ~sim_comp_channel() { close_descriptor(); }

  void close_descriptor() noexcept;

  std::deque<sim_cq*> events{};  // one count of the descriptor for each
  event_readers readers{};
  ibv_comp_channel verbs{.context = nullptr, .fd = -1, .refcnt = 0};
  abi_padding padding{};
  sim_context* context = nullptr;
};

/// A completion that the session holds (session::hold_completions).
struct held_completion {
  completion done;
  bool solicited;
};

struct sim_cq {
  static constexpr object_kind kind = object_kind::cq;

  sim_cq() = default;
  sim_cq(const sim_cq&) = delete;
  sim_cq& operator=(const sim_cq&) = delete;

  ibv_cq_ex extended{};  // starts with an ibv_cq (verbs.h: ibv_cq_ex_to_cq)
  abi_padding padding{};
  ibv_cq& verbs = *::ibv_cq_ex_to_cq(&extended);
  sim_context* context = nullptr;
  sim_comp_channel* channel = nullptr;
  bool is_extended = false;
  bool ignores_overrun = false;
  bool single_threaded = false;
  int completion_vector = 0;
  bool armed = false;
  bool armed_solicited_only = false;

  ring<completion> entries{};
  completion current{};  // of the iteration that is open
  bool iterating = false;
  std::thread::id iterator{};

  std::uint32_t hold = 0;  // the number of the hold in the completion plan, or 0
  std::deque<held_completion> held{};
  bool overrun_reported = false;

  /// Completions that are not polled yet.
  [[nodiscard]] std::size_t waiting() const noexcept { return entries.size(); }
};

/// The capacity of a Soft-RoCE queue for a requested one: the next power of two less one (measured:
/// 1 gives 1, 2 gives 3, 16 gives 31).
[[nodiscard]] constexpr std::uint32_t queue_capacity(std::uint32_t asked) noexcept {
  std::uint64_t slots = 1;
  while (slots < std::uint64_t{asked} + 1) slots *= 2;
  return static_cast<std::uint32_t>(slots - 1);
}

namespace device {

int req_notify_cq(call& c, ibv_cq* cq, int solicited_only);
/// The functions of an extended queue that take part in interception (ibv_start_poll and the like)
/// are null: intercept/ sets them.
ibv_cq_ex* create_cq_ex(call& c, ibv_context* context, ibv_cq_init_attr_ex* attributes);
int modify_cq(call& c, ibv_cq* cq, ibv_modify_cq_attr* attributes);
ibv_comp_channel* create_comp_channel(call& c, ibv_context* context);
int destroy_comp_channel(call& c, ibv_comp_channel* channel);
ibv_cq* create_cq(call& c, ibv_context* context, int cqe, void* cq_context,
                  ibv_comp_channel* channel, int comp_vector);
int resize_cq(call& c, ibv_cq* cq, int cqe);
int destroy_cq(call& c, ibv_cq* cq);

}  // namespace device

}  // namespace ibvxx::shim
