// Sweeps C code that does not use ibvxx. The argument says what is expected of it: "clean", or
// "leaks".
#include <cstddef>
#include <cstdio>
#include <ibvxx/result.hpp>
#include <ibvxx/shim.hpp>
#include <string_view>

#include "endpoint.h"

namespace {

ibvxx::result<void> told(const failed_call& failed) {
  if (!failed.name) return {};
  auto call = ibvxx::verb::none;
  for (std::size_t i = 0; i < ibvxx::verb_count; ++i)
    if (const auto v = static_cast<ibvxx::verb>(i); failed.name == std::string_view(name(v)))
      call = v;
  return ibvxx::failure(ibvxx::error(call, failed.code));
}

ibvxx::result<void> open_and_close() {
  endpoint e{};
  if (auto opened = told(endpoint_open(&e)); !opened) return opened;
  return told(endpoint_close(&e));
}

}  // namespace

int main(int, char** arguments) {
  const auto report = ibvxx::shim::sweep(open_and_close);
  std::fputs(report.text().c_str(), stdout);
  if (arguments[1] == std::string_view("clean")) return report.clean() ? 0 : 1;
  bool leaked_pd = false;
  for (const auto& failed : report.failures)
    leaked_pd = leaked_pd || (failed.injected.find("ibv_create_cq") != failed.injected.npos &&
                              failed.what.find("pd") != failed.what.npos);
  return leaked_pd ? 0 : 1;
}
