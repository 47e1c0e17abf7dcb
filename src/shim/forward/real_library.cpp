#include "forward/real_library.hpp"

#include <dlfcn.h>

#include "core/engine.hpp"

namespace ibvxx::shim {

void* real_symbol(const char* name) noexcept {
  static void* const library = [] {
    const engine::suppress_interception quiet;
    return ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  }();
  return library ? ::dlsym(library, name) : nullptr;
}

}  // namespace ibvxx::shim
