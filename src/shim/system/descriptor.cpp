// The system calls on descriptors that contexts use.

// With 64-bit offsets the headers rename fcntl to fcntl64; both are defined here, each under its
// own name.
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdarg>

#include "core/call.hpp"
#include "core/next_function.hpp"

using namespace ibvxx;
using namespace ibvxx::shim;

namespace {

[[nodiscard]] const void* as_object(int fd) noexcept {
  return reinterpret_cast<const void*>(static_cast<std::intptr_t>(fd));
}

int close_seen(call& c, int fd) {
  record* object = c.state().objects.find_descriptor(fd);
  const bool ours = object && object->live;
  const std::string here =
      "close(" + std::to_string(fd) + ") (call " + std::to_string(c.index()) + ")";
  if (!ours) {
    if (const record* owner = c.state().objects.owner_of_descriptor(fd)) {
      c.found(finding_kind::double_close, here + " of a descriptor that belongs to " +
                                              owner->title + ": its destroy closes it");
      errno = EBADF;
      return -1;
    }
  }
  const int outcome = close_uncounted(fd);
  const int code = errno;
  if (ours) c.state().objects.retire(*object, c.index());
  if (outcome != 0 && code == EBADF) {
    c.found(finding_kind::double_close, object ? here + " of a descriptor that call " +
                                                     std::to_string(object->gone_by) + " closed, " +
                                                     origin(*object)
                                               : here + " of a descriptor that is not open");
  }
  // Linux frees the descriptor whatever close() returns, so an injected failure comes after the
  // effect.
  errno = c.failing() ? c.refuse_code() : code;
  return c.failing() ? -1 : outcome;
}

template <class Function>
int control(Function* next, int fd, int command, void* argument) {
  call c(verb::fcntl, as_object(fd));
  return c.failing() ? c.refuse_minus_one() : next(fd, command, argument);
}

}  // namespace

extern "C" {

int epoll_create1(int flags) {
  static auto* const next = next_function<int(int)>("epoll_create1");
  if (!engine::in_session()) return next(flags);
  call c(verb::epoll_create1, nullptr);
  if (c.failing()) return c.refuse_minus_one();
  const int fd = next(flags);
  if (fd != -1 && c.is_seen()) c.state().objects.add_descriptor(fd, verb::epoll_create1, c.index());
  return fd;
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  static auto* const next = next_function<int(int, int, int, epoll_event*)>("epoll_ctl");
  if (!engine::in_session()) return next(epoll, operation, fd, event);
  call c(verb::epoll_ctl, as_object(epoll));
  return c.failing() ? c.refuse_minus_one() : next(epoll, operation, fd, event);
}

int close(int fd) {
  if (!engine::in_session()) return close_uncounted(fd);
  call c(verb::close, as_object(fd));
  return c.is_seen() ? close_seen(c, fd) : close_uncounted(fd);
}

// One pointer-sized argument covers every type that fcntl takes: every ABI of Linux passes int and
// pointer alike.
int fcntl(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  static auto* const next = next_function<int(int, int, ...)>("fcntl");
  return engine::in_session() ? control(next, fd, command, argument) : next(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  static auto* const next = next_function<int(int, int, ...)>("fcntl64");
  return engine::in_session() ? control(next, fd, command, argument) : next(fd, command, argument);
}

}  // extern "C"
