#include "device/page_check.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace ibvxx::shim {
namespace {

// Not in the headers of every C library in use (Linux 5.14).
constexpr int populate_read = 22;
constexpr int populate_write = 23;

[[nodiscard]] int populate(std::uintptr_t begin, std::uintptr_t end, int advice) noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  begin &= ~(page - 1);
  end = (end + page - 1) & ~(page - 1);
  // The pointer is not dereferenced here: only the kernel uses it.
  return ::madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0 ? 0 : errno;
}

}  // namespace

bool is_mapped(const void* address, std::size_t length) noexcept {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const int saved = errno;
  const auto begin = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
  const std::size_t whole = reinterpret_cast<std::uintptr_t>(address) - begin + length;
  // On Linux MS_ASYNC only looks for unmapped pages and schedules no writing (msync(2)). The C
  // library's msync is a cancellation point, which a verb that comes here is not.
  const bool mapped = ::syscall(SYS_msync, begin, whole, MS_ASYNC) == 0 || errno != ENOMEM;
  errno = saved;
  return mapped;
}

int check_pages(const void* address, std::size_t length, bool writable) noexcept {
  static const bool known = [] {
    char here = 0;
    const auto begin = reinterpret_cast<std::uintptr_t>(&here);
    return populate(begin, begin + 1, populate_write) == 0;
  }();
  if (!known) return 0;
  const int saved = errno;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  // ENOMEM: not mapped; EINVAL: not allowed; EFAULT: a fault that failed (madvise(2)).
  const int code = populate(begin, begin + length, writable ? populate_write : populate_read);
  errno = saved;
  return code == ENOMEM || code == EINVAL || code == EFAULT ? EFAULT : 0;
}

}  // namespace ibvxx::shim
