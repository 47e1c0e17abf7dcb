// A check for the tests that run in the virtual machine of the kernel tier.
#pragma once

#include <dirent.h>

#include <cstddef>
#include <cstdlib>

#include "catch.hpp"

namespace ibvxx::test {

[[nodiscard]] inline std::size_t entries(const char* directory) {
  std::size_t count = 0;
  DIR* const open = ::opendir(directory);
  REQUIRE(open != nullptr);
  while (::readdir(open)) ++count;
  ::closedir(open);
  return count;
}

[[nodiscard]] inline std::size_t descriptors() {
  return entries("/proc/self/fd");
}

/// The kernel's own count of what the process holds, and the process's count of its descriptors,
/// are back where they were.
class nothing_left {
 public:
  nothing_left() : descriptors_(descriptors()) {}
  nothing_left(const nothing_left&) = delete;
  nothing_left& operator=(const nothing_left&) = delete;
  ~nothing_left() {
    CHECK(descriptors() == descriptors_);
    CHECK(std::system("rdma_baseline check") == 0);
  }

 private:
  std::size_t descriptors_;
};

}  // namespace ibvxx::test
