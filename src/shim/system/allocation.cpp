// operator new and operator delete: rules can fail an allocation like any other call.
#include "core/sees_allocations.hpp"

#if IBVXX_SHIM_SEES_ALLOCATIONS

#include <malloc.h>

#include <cstdlib>
#include <new>

#include "core/call.hpp"
#include "device/memory.hpp"
#include "device/misuse.hpp"

using namespace ibvxx;
using namespace ibvxx::shim;

namespace {

/// malloc(3), or aligned_alloc(3), of at least one byte.
[[nodiscard]] void* take(std::size_t size) noexcept {
  return std::malloc(size != 0 ? size : 1);
}
[[nodiscard]] void* take(std::size_t size, std::align_val_t alignment) noexcept {
  const auto boundary = static_cast<std::size_t>(alignment);
  const std::size_t whole = size != 0 ? (size + boundary - 1) & ~(boundary - 1) : boundary;
  // aligned_alloc requires a multiple of the alignment.
  return whole >= size ? std::aligned_alloc(boundary, whole) : nullptr;
}

/// Memory, or null. As the standard requires ([new.delete.single]), the program's new-handler is
/// called, without the lock, as long as there is no memory, also where a rule is the reason.
template <class Call, class... Arguments>
[[nodiscard]] void* allocate(Call admitted, Arguments... arguments) {
  for (;;) {
    if (!engine::in_session() || admitted())
      if (void* memory = take(arguments...)) return memory;
    const std::new_handler handler = std::get_new_handler();
    // The shim's own allocations call no code of the program.
    if (!handler || engine_lock::held()) return nullptr;
    handler();
  }
}

/// False where a rule makes this allocation fail.
[[nodiscard]] bool admits() {
  const call c(verb::allocate, nullptr);
  return !c.failing();
}
[[nodiscard]] bool admits_unthrowing() noexcept {
  const call c(verb::allocate, nullptr, call::unthrowing::yes);
  return !c.failing();
}

template <class... Arguments>
[[nodiscard]] void* allocate_or_throw(Arguments... arguments) {
  if (void* memory = allocate(&admits, arguments...)) return memory;
  throw std::bad_alloc();
}

/// The new-handler may throw: null then.
template <class... Arguments>
[[nodiscard]] void* allocate_or_null(Arguments... arguments) noexcept {
  try {
    return allocate(&admits_unthrowing, arguments...);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void release(void* memory) noexcept {
  if (memory && has_regions()) [[unlikely]]
    find_freed_memory(memory, ::malloc_usable_size(memory), "operator delete");
  std::free(memory);
}

}  // namespace

// Every form is defined, also those that the standard library implements by others:
// AddressSanitizer does not.
void* operator new(std::size_t size) {
  return allocate_or_throw(size);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, alignment);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, alignment);
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
