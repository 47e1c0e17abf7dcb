// File descriptors: the owner, and the calls on them that a context needs.
#pragma once

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdint>
#include <ibvxx/handle.hpp>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Closes a descriptor. On Linux close(2) frees the descriptor whatever it returns (its man page:
/// "retrying after a failure return is the wrong thing to do"), so `unique_fd::reset()` reports an
/// error and leaves the owner empty.
struct fd_deleter {
  static constexpr verb call = verb::close;
  static constexpr int empty = -1;
  [[nodiscard]] static int destroy(int fd) noexcept { return ::close(fd) == 0 ? 0 : errno; }
  [[nodiscard, gnu::cold]] static error explain(int fd, int code) noexcept {
    return error(verb::close, code).explain("descriptor %d", fd);
  }
};

/// The owner of a file descriptor; an empty one holds -1.
class [[nodiscard]] unique_fd : public unique_handle<int, fd_deleter> {
 public:
  using unique_handle::unique_handle;

  /// Closes the descriptor. The owner is empty afterwards, also after an error: see fd_deleter.
  [[nodiscard]] result<void> reset() noexcept {
    auto closed = unique_handle::reset();
    if (!closed) static_cast<void>(release());
    return closed;
  }
};

/// A new epoll instance, close-on-exec.
[[nodiscard]] inline result<unique_fd> epoll_create() noexcept {
  unique_fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return failure(error(verb::epoll_create1, errno));
  return epoll;
}

/// Registers `fd` with `epoll` for `events`; each event carries `data`.
[[nodiscard]] inline result<void> epoll_add(int epoll, int fd, std::uint32_t events,
                                            std::uint64_t data) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    return failure(error(verb::epoll_ctl, errno)
                       .explain("adding descriptor %d to epoll descriptor %d", fd, epoll));
  return {};
}

/// Makes reads of `fd` return EAGAIN instead of waiting.
[[nodiscard]] inline result<void> set_nonblocking(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags == -1)
    return failure(error(verb::fcntl, errno).explain("F_GETFL of descriptor %d", fd));
  if ((flags & O_NONBLOCK) != 0) return {};
  if (::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
    return failure(error(verb::fcntl, errno).explain("F_SETFL O_NONBLOCK of descriptor %d", fd));
  return {};
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
