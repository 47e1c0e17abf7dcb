// Random programs against a simple model: which objects must be alive, how each request must
// complete, and which errors are allowed. IBVXX_SEED repeats a run, IBVXX_STEPS is its length.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "../catch.hpp"
#include "program.hpp"

namespace ibvxx::model_test {
namespace {

constexpr std::uint64_t steps_of_a_program = 1000;

[[nodiscard]] std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given ? std::strtoull(given, nullptr, 0) : otherwise;
}

/// Seeds of neighbouring programs must not resemble each other (splitmix64's increment).
[[nodiscard]] std::uint64_t seed_of(std::uint64_t run, std::uint64_t index) {
  return run + index * 0x9e3779b97f4a7c15;
}

void print(const coverage& seen) {
  std::printf("model: completions");
  for (const auto& [status, count] : seen.statuses)
    std::printf(" %s %" PRIu64, wc_status_name(status), count);
  std::printf("; successes by opcode");
  for (const auto& [opcode, count] : seen.opcodes)
    std::printf(" %d: %" PRIu64, static_cast<int>(opcode), count);
  std::printf("; %" PRIu64 " completion events, %" PRIu64 " overruns, %" PRIu64
              " injected failures, %" PRIu64 " refused destroys\n",
              seen.completion_events, seen.overruns, seen.injected, seen.refused_destroys);
}

}  // namespace

TEST_CASE("random programs behave as the model predicts, and leave nothing") {
  const std::uint64_t seed = number_from("IBVXX_SEED", std::random_device{}());
  const std::uint64_t steps = number_from("IBVXX_STEPS", 200000);
  std::printf("model: %" PRIu64 " steps, repeat with IBVXX_SEED=%" PRIu64 "\n", steps, seed);
  std::fflush(stdout);
  coverage seen;
  std::uint64_t done = 0;
  for (std::uint64_t index = 0; done < steps; ++index) {
    program one(seed_of(seed, index), seen);
    try {
      for (std::uint64_t i = 0; i < steps_of_a_program && done < steps; ++i, ++done) one.step();
      one.tear_down();
    } catch (const disagreement& what) {
      // The program's own destructors would only add to it.
      std::fprintf(stderr,
                   "model: program %" PRIu64 ", %s\nrepeat with IBVXX_SEED=%" PRIu64
                   " IBVXX_STEPS=%" PRIu64 "\n",
                   index, what.what(), seed, done + 1);
      std::abort();
    }
  }
  CHECK(done == steps);
  print(seen);
  // A shorter run may miss some of it.
  if (steps < 100000) return;
  for (const ibv_wc_status status :
       {IBV_WC_SUCCESS, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR,
        IBV_WC_MW_BIND_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
        IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR})
    CHECK(seen.statuses[status] >= 20);
  for (const ibv_wc_opcode opcode :
       {IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_FETCH_ADD, IBV_WC_BIND_MW,
        IBV_WC_LOCAL_INV, IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM})
    CHECK(seen.opcodes[opcode] >= 20);
  CHECK(seen.completion_events >= 20);
  CHECK(seen.overruns >= 20);
  CHECK(seen.injected >= 20);
  CHECK(seen.refused_destroys >= 20);
}

}  // namespace ibvxx::model_test
