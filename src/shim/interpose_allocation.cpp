// Memory allocation: a call that fails like any other.
#include <cstdlib>
#include <new>

#include "engine.hpp"

namespace {

/// False when a rule makes this allocation fail.
[[nodiscard]] bool admitted() noexcept {
  if (!ibvxx::shim::engine::in_session()) return true;
  const ibvxx::shim::call c(ibvxx::verb::allocate, nullptr);
  return c.forwarded() || !c.failing();
}

[[nodiscard]] void* allocate(std::size_t size) {
  if (admitted())
    if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

[[nodiscard]] void* allocate(std::size_t size, std::align_val_t alignment) {
  const auto boundary = static_cast<std::size_t>(alignment);
  // aligned_alloc wants a multiple of the alignment.
  if (admitted())
    if (void* memory = std::aligned_alloc(boundary, (size + boundary) & ~(boundary - 1)))
      return memory;
  throw std::bad_alloc();
}

}  // namespace

// The nothrow forms of the standard library call these.
void* operator new(std::size_t size) {
  return allocate(size);
}
void* operator new[](std::size_t size) {
  return allocate(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, alignment);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
