// The session that IBVXX_SHIM in the environment requests for a program that begins none itself.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/engine.hpp"
#include "device/machine.hpp"

namespace ibvxx::shim {
namespace {

/// "simulate": one simulated device. "forward", "off" or nothing: calls go to the real library.
std::unique_ptr<session_state> make_ambient_session() {
  const char* const mode = std::getenv("IBVXX_SHIM");
  const std::string_view wanted = mode ? mode : "";
  if (wanted != "simulate") {
    if (!wanted.empty() && wanted != "forward" && wanted != "off")
      std::fprintf(stderr,
                   "ibvxx-shim: IBVXX_SHIM=%s is none of simulate, forward and off: calls go to "
                   "libibverbs\n",
                   mode);
    return nullptr;
  }
  auto state = std::make_unique<session_state>();
  state->simulated = std::make_unique<machine>(simulated{});
  return state;
}

/// Runs before the constructors of the program's static objects, which may call verbs.
[[gnu::constructor(101)]] void offer_ambient_session() {
  engine::set_ambient_session(&make_ambient_session);
}

}  // namespace
}  // namespace ibvxx::shim
