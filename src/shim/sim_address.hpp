// Simulated address handles.
#pragma once

#include <infiniband/verbs.h>

#include "sim_objects.hpp"

namespace ibvxx::shim {

struct sim_ah {
  static constexpr object_kind kind = object_kind::ah;
  ibv_ah verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  const void* domain = nullptr;  // sim_pd::domain
  ibv_ah_attr attr{};
};

}  // namespace ibvxx::shim
