// Mappings that the program ends while they are registered.
#include <sys/mman.h>

#include "core/next_function.hpp"
#include "device/memory.hpp"
#include "device/misuse.hpp"

namespace {

using unmap_function = int(void*, std::size_t);
constinit ibvxx::shim::next_function<unmap_function> next_munmap{"munmap"};

[[gnu::constructor(101)]] void look_up_munmap() noexcept {
  next_munmap.get();
}

}  // namespace

// The kernel keeps the pages of a region after munmap(): requests then access bytes that are no
// longer mapped in the program.
extern "C" int munmap(void* address, std::size_t length) noexcept {
  if (ibvxx::shim::has_regions()) ibvxx::shim::find_freed_memory(address, length, "munmap");
  return next_munmap.get()(address, length);
}
