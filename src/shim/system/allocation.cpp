// operator new and operator delete: rules can fail an allocation like any other call.
#include "core/sees_allocations.hpp"

#if IBVXX_SHIM_SEES_ALLOCATIONS

#include <malloc.h>

#include <cstdlib>
#include <new>

#include "core/call.hpp"
#include "device/memory.hpp"
#include "device/misuse.hpp"

namespace {

/// False when a rule makes this allocation fail.
[[nodiscard]] bool admitted() noexcept {
  if (!ibvxx::shim::engine::in_session()) return true;
  const ibvxx::shim::call c(ibvxx::verb::allocate, nullptr);
  return !c.failing();
}

[[nodiscard]] void* try_allocate(std::size_t size) noexcept {
  return admitted() ? std::malloc(size != 0 ? size : 1) : nullptr;
}

[[nodiscard]] void* try_allocate(std::size_t size, std::align_val_t alignment) noexcept {
  const auto boundary = static_cast<std::size_t>(alignment);
  // aligned_alloc requires a multiple of the alignment.
  return admitted() ? std::aligned_alloc(boundary, (size + boundary) & ~(boundary - 1)) : nullptr;
}

void release(void* memory) noexcept {
  if (memory && ibvxx::shim::has_regions()) [[unlikely]]
    ibvxx::shim::find_freed_memory(memory, ::malloc_usable_size(memory), "operator delete");
  std::free(memory);
}

template <class... Alignment>
[[nodiscard]] void* allocate(std::size_t size, Alignment... alignment) {
  if (void* memory = try_allocate(size, alignment...)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Every form is defined, also those that the standard library implements by others:
// AddressSanitizer does not.
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
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return try_allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return try_allocate(size);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return try_allocate(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return try_allocate(size, alignment);
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  release(memory);
}

#endif
