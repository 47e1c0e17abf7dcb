// The C library's functions behind those that the shim defines.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace ibvxx::shim {

/// The next definition of a C library function after the shim's: the C library's, or a sanitizer's.
/// Has static storage duration. get() is async-signal-safe once it was called; files of system/
/// call it before the constructors of the program run.
template <class Function>
class next_function {
 public:
  explicit constexpr next_function(const char* name) noexcept : name_(name) {}
  next_function(const next_function&) = delete;
  next_function& operator=(const next_function&) = delete;

  Function* get() noexcept {
    Function* found = found_.load(std::memory_order_relaxed);
    if (!found) [[unlikely]]
      found_.store(found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_)),
                   std::memory_order_relaxed);
    return found;
  }

 private:
  const char* name_;
  std::atomic<Function*> found_{nullptr};
};

}  // namespace ibvxx::shim
