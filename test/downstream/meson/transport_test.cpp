// Every call of the transport fails in turn, and then every call of its clean-up too.
#include <cstdio>
#include <ibvxx/shim.hpp>

#include "transport.hpp"

int main() {
  const auto report = ibvxx::shim::sweep(run_transport, {.order = 2});
  std::fputs(report.text().c_str(), stdout);
  return report.clean() ? 0 : 1;
}
