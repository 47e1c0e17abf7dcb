#include "forward/real_library.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/engine.hpp"

namespace ibvxx::shim {
namespace {

[[nodiscard]] void* look_up(const char* name) noexcept {
  static void* const library = [] {
    const engine::suppress_interception quiet;
    return ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  }();
  return library ? ::dlsym(library, name) : nullptr;
}

/// What was found, by the address of the name, which is a literal. A name that finds its place
/// taken is looked up anew each time. Costs: a look-up is constant, and takes no lock.
struct found_symbol {
  std::atomic<const char*> name{nullptr};
  std::atomic<void*> symbol{nullptr};
};
constinit std::array<found_symbol, 1024> cache{};

[[nodiscard]] found_symbol& cached_place(const char* name) noexcept {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(name));
  return cache[(address * 0x9e3779b97f4a7c15U) >> 54];
}

}  // namespace

void* real_symbol(const char* name) noexcept {
  found_symbol& place = cached_place(name);
  const char* const known = place.name.load(std::memory_order_acquire);
  if (known == name) {
    if (void* const symbol = place.symbol.load(std::memory_order_acquire)) return symbol;
    return look_up(name);  // being written, or not in the library
  }
  void* const symbol = look_up(name);
  const char* none = nullptr;
  if (place.name.compare_exchange_strong(none, name, std::memory_order_acq_rel))
    place.symbol.store(symbol, std::memory_order_release);
  return symbol;
}

}  // namespace ibvxx::shim
