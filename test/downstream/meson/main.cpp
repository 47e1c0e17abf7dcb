#include <cstdio>

#include "transport.hpp"

int main() {
  const auto outcome = run_transport();
  if (!outcome) std::fprintf(stderr, "%s\n", outcome.error().message().c_str());
  return outcome ? 0 : 1;
}
