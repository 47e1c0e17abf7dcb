// Simulated objects that live in a context: domains, completion channels and completion queues.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <ibvxx/shim/ledger.hpp>
#include <thread>

#include "sim_device.hpp"
#include "sim_work.hpp"

namespace ibvxx::shim {

struct sim_td {
  static constexpr object_kind kind = object_kind::td;
  ibv_td verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
};

/// A protection domain, a parent domain, or an imported one.
struct sim_pd {
  static constexpr object_kind kind = object_kind::pd;
  ibv_pd verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  const void* domain = this;  // what protection goes by: of a parent domain, the one it stands for
  const void* thread_scope = nullptr;  // a parent domain's thread domain
  bool imported = false;
};

/// An XRC domain; those that were opened through one inode are one.
struct sim_xrcd {
  static constexpr object_kind kind = object_kind::xrcd;
  ibv_xrcd verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  std::uint64_t device = 0, inode = 0;  // 0: private
  const void* domain = this;
};

struct sim_cq;

struct sim_comp_channel {
  static constexpr object_kind kind = object_kind::comp_channel;

  sim_comp_channel() = default;
  sim_comp_channel(const sim_comp_channel&) = delete;
  sim_comp_channel& operator=(const sim_comp_channel&) = delete;
  ~sim_comp_channel() { close_descriptor(); }

  void close_descriptor() noexcept;

  std::deque<sim_cq*> events{};  // each worth one count of the descriptor
  ibv_comp_channel verbs{.context = nullptr, .fd = -1, .refcnt = 0};
  abi_padding padding{};
  sim_context* context = nullptr;
};

/// A completion that the session keeps back.
struct held_completion {
  completion done;
  bool solicited;
};

struct sim_cq {
  static constexpr object_kind kind = object_kind::cq;

  sim_cq() = default;
  sim_cq(const sim_cq&) = delete;
  sim_cq& operator=(const sim_cq&) = delete;

  ibv_cq_ex extended{};  // begins as an ibv_cq does (verbs.h: ibv_cq_ex_to_cq)
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
  completion current{};  // what an iteration is at
  bool iterating = false;
  std::thread::id iterator{};

  std::uint32_t hold = 0;  // the number of what keeps completions back, or 0
  std::deque<held_completion> held{};
  const void* thread_scope = nullptr;  // what lets one thread at a time use it
  bool overrun_told = false;

  /// Completions that nobody has polled yet.
  [[nodiscard]] std::size_t waiting() const noexcept { return entries.size(); }
};

/// Puts the functions of an extended queue in place: those for polling, and for each detail that
/// was asked for the one that reads it.
void install_polling(sim_cq& queue, std::uint64_t details) noexcept;

/// How many entries Soft-RoCE's queues hold that were asked to hold `asked`: the next power of two
/// less one (measured: 1 gives 1, 2 gives 3, 16 gives 31).
[[nodiscard]] constexpr std::uint32_t queue_capacity(std::uint32_t asked) noexcept {
  std::uint64_t slots = 1;
  while (slots < std::uint64_t{asked} + 1) slots *= 2;
  return static_cast<std::uint32_t>(slots - 1);
}

}  // namespace ibvxx::shim
