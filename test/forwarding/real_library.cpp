// libibverbs.so.1 for the tests of forwarding: the simulated device, with everything on offer, in a
// library of its own. So there is a second ledger, independent of the first.
#include <cstddef>
#include <ibvxx/shim.hpp>

namespace {

using namespace ibvxx::shim;

session& machine() {
  // As the real library, it is there as long as the process.
  static auto* const all = new session(simulated{{device_description::hardware("real0")}});
  return *all;
}

[[maybe_unused]] const session& from_the_start = machine();

/// The tests misuse it on purpose: what is found is not to be told at the end of the process.
[[gnu::destructor]] void collect() {
  static_cast<void>(machine().finish());
}

}  // namespace

extern "C" {

std::size_t real_library_live();
std::size_t real_library_calls();
std::size_t real_library_findings();
void real_library_raise(void* qp);

std::size_t real_library_live() {
  return machine().live();
}
std::size_t real_library_calls() {
  return machine().calls();
}
std::size_t real_library_findings() {
  return machine().findings().size();
}
void real_library_raise(void* qp) {
  machine().raise(static_cast<const ibv_qp*>(qp), IBV_EVENT_PATH_MIG);
}

}  // extern "C"
