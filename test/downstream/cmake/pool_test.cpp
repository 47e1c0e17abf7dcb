#include <cerrno>
#include <cstdio>
#include <ibvxx/shim.hpp>

#include "pool.hpp"
#include "pool_checks.hpp"

namespace {

bool third_region_is_named() {
  ibvxx::shim::session s;
  s.fail(ibvxx::verb::reg_mr).nth(3).with(ENOMEM);
  const auto outcome = fill_pool(4);
  return !outcome && outcome.error().call() == ibvxx::verb::reg_mr &&
         s.calls(ibvxx::verb::dereg_mr) == 2 && s.finish().empty();
}

}  // namespace

int main() {
  const bool survives = pool_survives_every_failure(3);
  const bool named = third_region_is_named();
  std::printf("survives %d, named %d\n", survives, named);
  return survives && named ? 0 : 1;
}
