#include "session/last_findings.hpp"

#include <cstdio>

#include "core/engine.hpp"
#include "session/rules.hpp"

namespace ibvxx::shim {

std::vector<finding> find_last() {
  const auto seen = engine::lock_session();
  seen.state.objects.find_leaks(seen.state.findings);
  find_unfired(seen.state);
  seen.state.findings.find_unmet_expectations();
  return seen.state.findings.all();
}

void write_findings(const std::vector<finding>& all) noexcept {
  for (const finding& one : all)
    std::fprintf(stderr, "ibvxx-shim: %s: %s\n", name(one.kind), one.text.c_str());
}

}  // namespace ibvxx::shim
