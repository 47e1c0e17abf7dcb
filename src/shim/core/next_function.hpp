// The C library's functions behind those that the shim defines.
#pragma once

#include <dlfcn.h>

namespace ibvxx::shim {

/// The next definition of a C library function after the shim's: the C library's, or a sanitizer's.
template <class Function>
[[nodiscard]] Function* next_function(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// close(2) without interception: no session counts it, and no rule fails it.
int close_uncounted(int fd) noexcept;

}  // namespace ibvxx::shim
