#include "core/next_function.hpp"

namespace ibvxx::shim {

int close_uncounted(int fd) noexcept {
  static auto* const next = next_function<int(int)>("close");
  return next(fd);
}

}  // namespace ibvxx::shim
