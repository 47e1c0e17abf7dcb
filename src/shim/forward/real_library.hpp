// The real libibverbs.
#pragma once

namespace ibvxx::shim {

/// The symbol of that name, a literal, in libibverbs.so.1, or null where the library is not
/// installed. The first call loads the library, and the first for a name looks that up.
[[nodiscard]] void* real_symbol(const char* name) noexcept;

template <class Function>
[[nodiscard]] Function* real_function(const char* name) noexcept {
  return reinterpret_cast<Function*>(real_symbol(name));
}

}  // namespace ibvxx::shim
