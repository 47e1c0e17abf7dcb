#include "core/own_calls.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace ibvxx::shim {
namespace {

// The C library's functions of these names are cancellation points; syscall(2) is none.
[[nodiscard]] long write_own(int fd, const void* bytes, std::size_t size) noexcept {
  return ::syscall(SYS_write, fd, bytes, size);
}

[[nodiscard]] bool is_readable(int fd) noexcept {
  pollfd one{fd, POLLIN, 0};
  timespec now{};
  return ::syscall(SYS_ppoll, &one, 1, &now, nullptr, std::size_t{0}) == 1;
}

}  // namespace

void close_own(int fd) noexcept {
  const int saved = errno;
  ::syscall(SYS_close, fd);
  errno = saved;
}

void count_up(int fd) noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  static_cast<void>(write_own(fd, &one, sizeof one));
  errno = saved;
}

void count_down(int fd) noexcept {
  const int saved = errno;
  std::uint64_t one = 0;
  // The program may have read the descriptor itself: a blocking read would wait then.
  if (is_readable(fd)) ::syscall(SYS_read, fd, &one, sizeof one);
  errno = saved;
}

void write_line(const char* format, ...) noexcept {
  const int saved = errno;
  char line[1024];
  std::va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length >= 0) {
    const auto end = std::min(static_cast<std::size_t>(length), sizeof line - 2);
    line[end] = '\n';
    static_cast<void>(write_own(STDERR_FILENO, line, end + 1));
  }
  errno = saved;
}

}  // namespace ibvxx::shim
