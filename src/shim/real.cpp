#include "real.hpp"

#include "engine.hpp"

namespace ibvxx::shim::real {

void* verbs_symbol(const char* name) noexcept {
  static void* const library = [] {
    const engine::suppress_interception quiet;
    return ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  }();
  return library ? ::dlsym(library, name) : nullptr;
}

int close(int fd) noexcept {
  static auto* const next = next_function<int(int)>("close");
  return next(fd);
}

}  // namespace ibvxx::shim::real
