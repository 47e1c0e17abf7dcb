// Simulated memory: regions, windows, and memory on the device.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim_objects.hpp"

namespace ibvxx::shim {

struct sim_qp;

struct sim_dm {
  static constexpr object_kind kind = object_kind::dm;
  ibv_dm verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  std::vector<std::byte> memory{};
  sim_dm* original = this;  // of an imported one, whose memory it is
  bool imported = false;
};

struct sim_mr {
  static constexpr object_kind kind = object_kind::mr;

  enum class backing : std::uint8_t { memory, device, nothing, foreign };

  sim_mr() = default;
  sim_mr(const sim_mr&) = delete;
  sim_mr& operator=(const sim_mr&) = delete;
  ~sim_mr();

  ibv_mr verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  const void* domain = nullptr;  // sim_pd::domain
  std::byte* bytes = nullptr;    // the first byte; null where there is none to be touched
  std::uint64_t iova = 0;        // by which work requests name it
  std::uint64_t length = 0;
  unsigned access = 0;
  backing kind_of_memory = backing::memory;
  bool imported = false;
  unsigned windows = 0;  // bound to it
  // Pieces, by address and length, that the program has freed or unmapped. The device has the pages
  // still, and nobody else sees what is in them.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> forgotten{};
  bool forgotten_told = false;
  void* mapping = nullptr;  // of a DMA buffer
  std::size_t mapped = 0;
};

struct sim_mw {
  static constexpr object_kind kind = object_kind::mw;
  ibv_mw verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  const void* domain = nullptr;
  std::uint32_t rkey = 0;    // the device's view: the program changes its own copy
  sim_mr* region = nullptr;  // what it is bound to
  sim_qp* qp = nullptr;      // through which, for type 2
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  unsigned access = 0;
};

/// Takes the access away that a window gives.
void unbind(sim_mw& window) noexcept;

}  // namespace ibvxx::shim
