// The system calls on descriptors that contexts use.

// With 64-bit offsets the headers rename fcntl to fcntl64; both are defined here, each under its
// own name.
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdarg>
#include <optional>

#include "core/call.hpp"
#include "core/next_function.hpp"

using namespace ibvxx;
using namespace ibvxx::shim;

namespace {

[[nodiscard]] const void* as_object(int fd) noexcept {
  return reinterpret_cast<const void*>(static_cast<std::intptr_t>(fd));
}

// The C library's functions. Some are cancellation points, and some may wait.
using create_function = int(int);
using epoll_function = int(int, int, int, epoll_event*);
using close_function = int(int);
using control_function = int(int, int, ...);
constinit next_function<create_function> next_epoll_create1{"epoll_create1"};
constinit next_function<epoll_function> next_epoll_ctl{"epoll_ctl"};
constinit next_function<close_function> next_close{"close"};
constinit next_function<control_function> next_fcntl{"fcntl"};
constinit next_function<control_function> next_fcntl64{"fcntl64"};

[[gnu::constructor(101)]] void look_up_descriptor_functions() noexcept {
  next_epoll_create1.get();
  next_epoll_ctl.get();
  next_close.get();
  next_fcntl.get();
  next_fcntl64.get();
}

/// Calls the C library's function with the lock released.
template <class Function, class... Arguments>
int call_next(call& c, Function* next, Arguments... arguments) {
  std::optional<call::released> running;
  if (c.is_seen()) running.emplace(c);
  expect_unlocked(name(c.which()));
  return next(arguments...);
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
  // Before the real call: after it the number may be another descriptor's.
  if (ours) c.state().objects.retire(*object, c.index());
  const std::string history = object && !ours ? " of a descriptor that call " +
                                                    std::to_string(object->gone_by) + " closed, " +
                                                    origin(*object)
                                              : " of a descriptor that is not open";
  const int outcome = call_next(c, next_close.get(), fd);
  const int code = errno;
  if (outcome != 0 && code == EBADF) c.found(finding_kind::double_close, here + history);
  // Linux frees the descriptor whatever close() returns, so an injected failure comes after the
  // effect.
  errno = c.failing() ? c.refuse_code() : code;
  return c.failing() ? -1 : outcome;
}

int control(next_function<control_function>& next, int fd, int command, void* argument) {
  call c(verb::fcntl, as_object(fd));
  return c.failing() ? c.refuse_minus_one() : call_next(c, next.get(), fd, command, argument);
}

}  // namespace

extern "C" {

int epoll_create1(int flags) {
  if (!engine::in_session_of_this_process()) return next_epoll_create1.get()(flags);
  call c(verb::epoll_create1, nullptr, call::unthrowing::yes);
  if (c.failing()) return c.refuse_minus_one();
  const int fd = call_next(c, next_epoll_create1.get(), flags);
  if (fd != -1 && c.is_seen()) c.state().objects.add_descriptor(fd, verb::epoll_create1, c.index());
  return fd;
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  if (!engine::in_session_of_this_process())
    return next_epoll_ctl.get()(epoll, operation, fd, event);
  call c(verb::epoll_ctl, as_object(epoll), call::unthrowing::yes);
  return c.failing() ? c.refuse_minus_one()
                     : call_next(c, next_epoll_ctl.get(), epoll, operation, fd, event);
}

int close(int fd) {
  if (!engine::in_session_of_this_process()) return next_close.get()(fd);
  call c(verb::close, as_object(fd));
  return c.is_seen() ? close_seen(c, fd) : call_next(c, next_close.get(), fd);
}

// One pointer-sized argument covers every type that fcntl takes: every ABI of Linux passes int and
// pointer alike.
int fcntl(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return engine::in_session_of_this_process() ? control(next_fcntl, fd, command, argument)
                                              : next_fcntl.get()(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return engine::in_session_of_this_process() ? control(next_fcntl64, fd, command, argument)
                                              : next_fcntl64.get()(fd, command, argument);
}

}  // extern "C"
