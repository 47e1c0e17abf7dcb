// Mappings that the program ends while they are registered.
#include <sys/mman.h>

#include "core/next_function.hpp"
#include "device/memory.hpp"
#include "device/misuse.hpp"

// The kernel keeps the pages of a region after munmap(): requests then access bytes that are no
// longer mapped in the program.
extern "C" int munmap(void* address, std::size_t length) noexcept {
  static auto* const next = ibvxx::shim::next_function<int(void*, std::size_t)>("munmap");
  if (ibvxx::shim::has_regions()) ibvxx::shim::find_freed_memory(address, length, "munmap");
  return next(address, length);
}
