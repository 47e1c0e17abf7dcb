// Memory regions.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "core/call.hpp"
#include "device/context.hpp"
#include "device/range_set.hpp"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace ibvxx::shim {

struct machine;

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
  std::byte* bytes = nullptr;    // the first byte; null where no bytes are accessed
  std::uint64_t iova = 0;        // first address in work requests
  std::uint64_t length = 0;
  unsigned access = 0;
  backing kind_of_memory = backing::memory;
  bool imported = false;
  unsigned windows = 0;     // bound to it
  std::uint32_t place = 0;  // in machine::regions; 0: not there
  // What the program has freed or unmapped, in the region's address space. A real device keeps the
  // pages, which are no longer mapped in the program.
  range_set forgotten{};
  bool forgotten_reported = false;
  void* mapping = nullptr;  // of a DMA buffer
  std::size_t mapped = 0;
};

/// Whether memory of the program is registered. Needs no lock: the check that comes before the
/// hooks of operator delete and munmap.
[[nodiscard]] bool has_regions() noexcept;
void count_regions(int by) noexcept;
/// Puts a region of the program's memory among those that the hooks look for.
void index_region(machine& own, sim_mr& region);
/// Frees a region's key, and takes it from those.
void forget_region(machine& own, sim_mr& region) noexcept;

namespace device {

ibv_mr* alloc_null_mr(call& c, ibv_pd* pd);
ibv_mr* reg_dm_mr(call& c, ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access);
int advise_mr(call& c, ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags,
              ibv_sge* ranges, std::uint32_t count);
ibv_mr* reg_mr(call& c, ibv_pd* pd, void* address, std::size_t length, int access);
ibv_mr* reg_mr_iova(call& c, ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                    int access);
ibv_mr* reg_mr_iova2(call& c, ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                     unsigned access);
ibv_mr* reg_dmabuf_mr(call& c, ibv_pd* pd, std::uint64_t offset, std::size_t length,
                      std::uint64_t iova, int fd, int access);
ibv_mr* import_mr(call& c, ibv_pd* pd, std::uint32_t handle);
void unimport_mr(call& c, ibv_mr* mr);
int rereg_mr(call& c, ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length,
             int access);
int dereg_mr(call& c, ibv_mr* mr);

}  // namespace device

}  // namespace ibvxx::shim
