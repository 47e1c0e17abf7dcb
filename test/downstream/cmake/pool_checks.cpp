#include "pool_checks.hpp"

#include <cstdio>
#include <ibvxx/shim.hpp>

#include "pool.hpp"

bool pool_survives_every_failure(std::size_t count) {
  const auto report = ibvxx::shim::sweep([count] { return fill_pool(count); });
  std::fputs(report.text().c_str(), stdout);
  return report.clean();
}
