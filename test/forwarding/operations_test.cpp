// What takes the place of a real context's operations: contexts that no provider of today makes.
#include "forward/operations.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <mutex>

#include "core/engine.hpp"
#include "forward/forwarding.hpp"
#include "intercept/operations.hpp"
#include "suite.hpp"

namespace ibvxx::forwarding_operations_test {
namespace {

int poll(ibv_cq*, int, ibv_wc*) {
  return 0;
}
int destroy_counters(ibv_counters*) {
  return 0;
}
int modify_cq(ibv_cq*, ibv_modify_cq_attr*) {
  return 0;
}

/// As for a real context that was just opened.
void put_in_place(ibv_context& context) {
  verbs_context ours{};
  shim::install_operations(ours);
  shim::replace_operations(context, ours);
}

TEST_CASE("forwarding: an operation that the provider does not have stays null") {
  verbs_context real{};
  real.sz = sizeof real;
  real.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  real.context.ops.poll_cq = &poll;
  real.modify_cq = &modify_cq;
  put_in_place(real.context);
  CHECK(real.context.ops.poll_cq != &poll);
  CHECK(real.modify_cq != &modify_cq);
  CHECK(shim::original_operations(real.context).modify_cq == &modify_cq);
  CHECK(shim::original_operations(real.context).context.ops.poll_cq == &poll);
  CHECK(real.context.ops.req_notify_cq == nullptr);
  CHECK(real.alloc_td == nullptr);
}

TEST_CASE("forwarding: memory before the context of an older library is not read") {
  verbs_context real{};
  real.sz = sizeof real - offsetof(verbs_context, modify_cq);  // the first that it has
  real.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  real.destroy_counters = &destroy_counters;  // what happens to be there
  real.modify_cq = &modify_cq;
  put_in_place(real.context);
  CHECK(real.destroy_counters == &destroy_counters);
  CHECK(real.modify_cq != &modify_cq);
}

TEST_CASE("forwarding: a context without extensions has its old operations replaced") {
  verbs_context real{};
  real.context.ops.poll_cq = &poll;
  real.modify_cq = &modify_cq;  // not its own
  put_in_place(real.context);
  CHECK(real.context.ops.poll_cq != &poll);
  CHECK(real.modify_cq == &modify_cq);
}

TEST_CASE("forwarding: a null operation of an object stays null") {
  ibv_cq_ex cq{};
  CHECK(shim::replace(cq.start_poll, [](ibv_cq_ex*, ibv_poll_cq_attr*) { return 0; }) == nullptr);
  CHECK(cq.start_poll == nullptr);
}

#ifdef IBVXX_SHIM_CHECKS_LOCK
TEST_CASE("forwarding: a debug build ends a process that calls a real function under the lock") {
  const auto call = [] { return shim::call_real<std::size_t>("real_library_calls"); };
  static_cast<void>(call());
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    const std::lock_guard held(shim::engine::lock());
    static_cast<void>(call());
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}
#endif

}  // namespace
}  // namespace ibvxx::forwarding_operations_test
