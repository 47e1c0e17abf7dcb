// The real functions behind the intercepted ones.
#pragma once

#include <dlfcn.h>

namespace ibvxx::shim::real {

/// The symbol of that name in libibverbs.so.1, or null where the library is not installed. Loaded
/// at the first question.
[[nodiscard]] void* verbs_symbol(const char* name) noexcept;

template <class Function>
[[nodiscard]] Function* verbs_function(const char* name) noexcept {
  return reinterpret_cast<Function*>(verbs_symbol(name));
}

/// The next definition of a C library function after the shim's: the C library's, or a sanitizer's.
template <class Function>
[[nodiscard]] Function* next_function(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int close(int fd) noexcept;

}  // namespace ibvxx::shim::real
