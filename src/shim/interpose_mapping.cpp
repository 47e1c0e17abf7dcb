// Memory that goes while it is registered.
#include <sys/mman.h>

#include "misuse.hpp"
#include "real.hpp"

// The kernel keeps the pages of a region, wherever the program goes with its mapping: requests are
// still carried out, on bytes that nobody sees.
extern "C" int munmap(void* address, std::size_t length) noexcept {
  static auto* const next = ibvxx::shim::real::next_function<int(void*, std::size_t)>("munmap");
  if (ibvxx::shim::engine::has_regions()) {
    ibvxx::shim::call c(ibvxx::verb::none, ibvxx::shim::call::part::uncounted);
    if (!c.forwarded()) ibvxx::shim::forget_memory(c, address, length, "munmap");
  }
  return next(address, length);
}
