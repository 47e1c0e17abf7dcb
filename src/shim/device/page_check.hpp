// Whether the kernel could pin memory.
#pragma once

#include <cstddef>

namespace ibvxx::shim {

/// 0, or EFAULT where pinning would fail: an address that is not mapped, or pages that may not be
/// written although `writable` is asked for. As pinning does, it faults the pages in. Returns 0
/// also where the kernel has no such check (before Linux 5.14).
[[nodiscard]] int check_pages(const void* address, std::size_t length, bool writable) noexcept;

/// Whether every page of a range is mapped; costs one system call.
[[nodiscard]] bool is_mapped(const void* address, std::size_t length) noexcept;

}  // namespace ibvxx::shim
