// Memory on the device.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/call.hpp"
#include "device/context.hpp"

namespace ibvxx::shim {

struct sim_dm {
  static constexpr object_kind kind = object_kind::dm;
  ibv_dm verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  std::vector<std::byte> memory{};
  sim_dm* original = this;  // whose memory it uses: of an imported one, the allocated one
  bool imported = false;
  bool exported = false;  // another one uses its memory, or has
};

namespace device {

/// ibv_dm::memcpy_to_dm and memcpy_from_dm are null: intercept/ sets them.
ibv_dm* alloc_dm(call& c, ibv_context* context, ibv_alloc_dm_attr* attributes);
int free_dm(call& c, ibv_dm* dm);
ibv_dm* import_dm(call& c, ibv_context* context, std::uint32_t handle);
void unimport_dm(call& c, ibv_dm* dm);
int memcpy_to_dm(call& c, ibv_dm* dm, std::uint64_t offset, const void* host, std::size_t length);
int memcpy_from_dm(call& c, void* host, ibv_dm* dm, std::uint64_t offset, std::size_t length);

}  // namespace device

}  // namespace ibvxx::shim
