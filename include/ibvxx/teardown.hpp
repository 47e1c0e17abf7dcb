// Where a failed destroy goes when there is nobody to return it to: the teardown handler.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ibvxx/error.hpp>

namespace ibvxx {

/// Receives the failure of a destroy that happened in a destructor or a move assignment. The object
/// it speaks of is still alive and nobody owns it any more; but a descriptor is gone all the same
/// (see fd_deleter), and so is the queue pair of which an rdma_context tells that ibv_modify_qp
/// failed, unless its ibv_destroy_qp follows. Called on the destroying thread; it must not throw.
using teardown_handler = void (*)(const error&) noexcept;

namespace detail {

inline void write_teardown_line(const error& e) noexcept {
  // One write, so that lines of several threads do not mix. Not stdio: this may run after it was
  // torn down.
  constexpr char prefix[] = "ibvxx: leaked in a destructor: ";
  char line[sizeof prefix + error::max_message + 1];
  std::size_t length = sizeof prefix - 1;
  std::memcpy(line, prefix, length);
  length += e.message_to(line + length, error::max_message);
  line[length++] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, length);
}

// One for the process, also where its shared objects hide their symbols (-fvisibility=hidden).
[[gnu::visibility("default")]] inline std::atomic<teardown_handler> current_teardown_handler{
    &write_teardown_line};

/// Hands `e` to the handler in force, with errno kept.
[[gnu::cold]] inline void report_teardown(const error& e) noexcept {
  const int saved = errno;
  current_teardown_handler.load(std::memory_order_acquire)(e);
  errno = saved;
}

/// A destructor's answer to a failed destroy: the handler is told, and the object stays alive.
inline bool report_and_keep(const error& e) noexcept {
  report_teardown(e);
  return false;
}

}  // namespace detail

/// Installs the process-wide handler and returns the one before; nullptr puts the default back,
/// which writes one line to standard error. Safe from any thread.
inline teardown_handler set_teardown_handler(teardown_handler handler) noexcept {
  return detail::current_teardown_handler.exchange(handler ? handler : &detail::write_teardown_line,
                                                   std::memory_order_acq_rel);
}

}  // namespace ibvxx
