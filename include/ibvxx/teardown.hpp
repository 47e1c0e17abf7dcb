// The teardown handler, which receives the failures of destructors.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ibvxx/error.hpp>

namespace ibvxx {

/// Receives the failure of a destroy in a destructor or a move assignment. The object is still
/// alive and has no owner. Exceptions: a descriptor is closed all the same (see fd_deleter), and a
/// queue pair for which an rdma_context reports ibv_modify_qp is destroyed, unless a failure of its
/// ibv_destroy_qp follows. Called on the destroying thread; it must not throw.
using teardown_handler = void (*)(const error&) noexcept;

namespace detail {

inline void write_teardown_line(const error& e) noexcept {
  // One write, so that the lines of several threads do not mix. Not stdio, which may be destroyed
  // already.
  constexpr char prefix[] = "ibvxx: leaked in a destructor: ";
  char line[sizeof prefix + error::max_message + 1];
  std::size_t length = sizeof prefix - 1;
  std::memcpy(line, prefix, length);
  length += e.message_to(line + length, error::max_message);
  line[length++] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, length);
}

// One for the process, even if its shared objects hide their symbols (-fvisibility=hidden).
[[gnu::visibility("default")]] inline std::atomic<teardown_handler> current_teardown_handler{
    &write_teardown_line};

/// Passes `e` to the current handler. Keeps errno.
[[gnu::cold]] inline void report_teardown(const error& e) noexcept {
  const int saved = errno;
  current_teardown_handler.load(std::memory_order_acquire)(e);
  errno = saved;
}

/// Passes a failed destroy to the handler. Always false: the object is not given up.
inline bool report_and_keep(const error& e) noexcept {
  report_teardown(e);
  return false;
}

}  // namespace detail

/// Installs the process-wide handler and returns the previous one; nullptr installs the default,
/// which writes one line to standard error. May be called from any thread.
inline teardown_handler set_teardown_handler(teardown_handler handler) noexcept {
  return detail::current_teardown_handler.exchange(handler ? handler : &detail::write_teardown_line,
                                                   std::memory_order_acq_rel);
}

}  // namespace ibvxx
