// The seed of a randomised test: printed, and taken from IBVXX_TEST_SEED to repeat a run.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace ibvxx::test {

inline std::uint32_t seed(const char* of) {
  const char* given = std::getenv("IBVXX_TEST_SEED");
  const std::uint32_t value =
      given ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  std::printf("%s: seed %u (repeat with IBVXX_TEST_SEED=%u)\n", of, value, value);
  std::fflush(stdout);
  return value;
}

}  // namespace ibvxx::test
