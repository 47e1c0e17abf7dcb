// Memory windows.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"
#include "device/context.hpp"

namespace ibvxx::shim {

struct sim_mr;
struct sim_qp;

struct sim_mw {
  static constexpr object_kind kind = object_kind::mw;
  ibv_mw verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  const void* domain = nullptr;
  std::uint32_t rkey = 0;       // the device's view: the program changes its own copy
  sim_mr* region = nullptr;     // that it is bound to; null: none
  std::uint32_t qp_number = 0;  // of the queue pair that bound it; checked for type 2
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  unsigned access = 0;
};

/// Ends the access that a window gives.
void unbind(sim_mw& window) noexcept;

namespace device {

ibv_mw* alloc_mw(call& c, ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(call& c, ibv_mw* mw);

}  // namespace device

}  // namespace ibvxx::shim
