// Mappings that the program ends while they are registered.
#include <sys/mman.h>

#include "core/next_function.hpp"
#include "device/memory.hpp"
#include "device/misuse.hpp"

// The kernel keeps the pages of a region, whatever the program does with its mapping: requests are
// carried out on bytes that the program does not see any more.
extern "C" int munmap(void* address, std::size_t length) noexcept {
  static auto* const next = ibvxx::shim::next_function<int(void*, std::size_t)>("munmap");
  if (ibvxx::shim::has_regions()) ibvxx::shim::find_freed_memory(address, length, "munmap");
  return next(address, length);
}
