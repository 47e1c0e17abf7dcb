// What the forwarding tests ask the library behind the verbs (see real_library.cpp).
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "catch.hpp"

namespace ibvxx::test {

/// A function of the library that libibverbs.so.1 is in this process.
template <class Function>
[[nodiscard]] Function* of_real_library(const char* name) {
  void* const library = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = library ? ::dlsym(library, name) : nullptr;
  if (!found)
    throw std::runtime_error(std::string(name) +
                             ": run with LD_LIBRARY_PATH as test/meson.build does");
  return reinterpret_cast<Function*>(found);
}

/// Objects that are alive there.
[[nodiscard]] inline std::size_t really_live() {
  static auto* const ask = of_real_library<std::size_t()>("real_library_live");
  return ask();
}
/// Calls that got there, and things that were done wrong there.
[[nodiscard]] inline std::size_t really_called() {
  static auto* const ask = of_real_library<std::size_t()>("real_library_calls");
  return ask();
}
[[nodiscard]] inline std::size_t really_found() {
  static auto* const ask = of_real_library<std::size_t()>("real_library_findings");
  return ask();
}
/// Has the device raise an event of the queue pair.
inline void raise_really(void* qp) {
  static auto* const ask = of_real_library<void(void*)>("real_library_raise");
  ask(qp);
}

/// The real library is as it was before, and nothing was done wrong to it.
class really_clean {
 public:
  really_clean() : live_(test::really_live()), found_(test::really_found()) {}
  really_clean(const really_clean&) = delete;
  really_clean& operator=(const really_clean&) = delete;
  ~really_clean() {
    CHECK(test::really_live() == live_);
    CHECK(test::really_found() == found_);
  }

 private:
  std::size_t live_, found_;
};

}  // namespace ibvxx::test
