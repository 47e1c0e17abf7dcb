// Simulated objects that live in a context.
#pragma once

#include <infiniband/verbs.h>

#include <deque>
#include <ibvxx/shim/ledger.hpp>

#include "sim_device.hpp"

namespace ibvxx::shim {

struct sim_pd {
  static constexpr object_kind kind = object_kind::pd;
  ibv_pd verbs{};
  private_room room{};
  sim_context* context = nullptr;
};

struct sim_mr {
  static constexpr object_kind kind = object_kind::mr;
  ibv_mr verbs{};
  private_room room{};
};

/// Events read by the program against those that it acknowledged: a destroy waits for the two to be
/// equal, so too many acknowledgements hang it as well.
struct event_balance {
  unsigned read = 0;
  unsigned acknowledged = 0;
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
  private_room room{};
  sim_context* context = nullptr;
};

struct sim_cq {
  static constexpr object_kind kind = object_kind::cq;
  ibv_cq verbs{};
  private_room room{};
  sim_context* context = nullptr;
  sim_comp_channel* channel = nullptr;
  bool armed = false;
  bool armed_solicited_only = false;
  event_balance completion_events{};
  event_balance async_events{};
};

}  // namespace ibvxx::shim
