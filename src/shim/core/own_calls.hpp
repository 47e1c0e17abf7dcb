// System calls of the shim itself. No session counts them, and none is a cancellation point: the
// verbs that make them are none either, and they are made under the engine's lock. None can block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ibvxx::shim {

/// close(2).
void close_own(int fd) noexcept;
/// Adds 1 to the count of an eventfd.
void count_up(int fd) noexcept;
/// Takes 1 from the count of an eventfd, where there is one.
void count_down(int fd) noexcept;
/// Writes a line to standard error.
void write_line(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

}  // namespace ibvxx::shim
