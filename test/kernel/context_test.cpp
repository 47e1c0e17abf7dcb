// The context on the kernel's own Soft-RoCE device, through the real libibverbs. Runs as root
// inside the virtual machine that boot.sh starts: rxe0 and rxe1, and nothing else.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "kernel/nothing_left.hpp"
#include "suite.hpp"

using namespace ibvxx;
using test::descriptors;
using test::nothing_left;

namespace {

std::size_t mappings() {
  std::size_t lines = 0;
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  REQUIRE(maps != nullptr);
  for (int c = std::fgetc(maps); c != EOF; c = std::fgetc(maps)) lines += c == '\n' ? 1U : 0U;
  std::fclose(maps);
  return lines;
}

int run(const char* command) {
  return std::system(command);
}

/// Runs `work` in a process of its own as the user nobody; its value is the exit status.
int as_nobody(const std::function<int()>& work) {
  const pid_t child = ::fork();
  REQUIRE(child != -1);
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(100);
    ::_exit(work());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

rlimit limit_of(int resource) {
  rlimit limit{};
  REQUIRE(::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0);
  return limit;
}

}  // namespace

TEST_CASE("kernel: a context opens on Soft-RoCE, owns what was configured, and leaves nothing") {
  const nothing_left check;
  auto context = rdma_context::open({.device_name = "rxe0", .comp_channels = 4, .cqs = 8});
  INFO((context ? "" : context.error().message()));
  REQUIRE(context);
  CHECK(context->state() == context_state::enabled);
  CHECK(context->owned() ==
        context_inventory{
            .devices = 1, .pds = 1, .epolls = 1, .channels = 4, .cqs = 8, .notification_cqs = 1});
  CHECK(context->port() == 1);
  CHECK(context->gid().entry.gid_index == 1);
  CHECK(context->gid().entry.gid_type == IBV_GID_TYPE_ROCE_V2);
  CHECK(family(context->gid().entry.gid) == gid_family::ipv4_mapped);
  const auto calls = context->enable();
  CHECK(calls);
  CHECK(context->reset());
  CHECK(context->reset());
  CHECK(context->state() == context_state::disabled);
  CHECK(context->enable());
  CHECK(context->state() == context_state::enabled);
}

TEST_CASE("kernel: memory is registered, deregistered once, and released by reset()") {
  const nothing_left check;
  auto context = rdma_context::open({});
  REQUIRE(context);
  std::vector<std::byte> memory(1 << 20);
  const auto first =
      context->register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  REQUIRE(first);
  const auto second =
      context->register_memory(std::span(memory).first(4096), IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(second);
  CHECK((*first)->lkey != (*second)->lkey);
  CHECK(context->unregister_memory(*first));
  CHECK(context->unregister_memory(*first).error().code() == EINVAL);
  CHECK(context->owned().regions == 1);
  CHECK(context->reset());
}

TEST_CASE("kernel: destroying a parent before its children is EBUSY, and errno does not change") {
  const nothing_left check;
  auto list = or_throw(get_device_list());
  auto context = or_throw(open_device(list.find("rxe0")));
  auto pd = or_throw(alloc_pd(context));
  auto channel = or_throw(create_comp_channel(context));
  auto cq = or_throw(create_cq(context, 16, channel.get()));
  std::byte memory[4096];
  auto mr = or_throw(reg_mr(pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE));
  errno = 7;
  CHECK(pd.reset().error().code() == EBUSY);
  CHECK(channel.reset().error().code() == EBUSY);
  CHECK(cq.reset());
  CHECK(channel.reset());
  CHECK(mr.reset());
  CHECK(pd.reset());
  CHECK(context.reset());
}

// Case 28.
TEST_CASE(
    "kernel: cqe = max_cqe is accepted; one more is refused with both numbers, or clamped where "
    "asked") {
  const nothing_left check;
  auto list = or_throw(get_device_list());
  auto context = or_throw(open_device(list.find("rxe0")));
  const int limit = or_throw(query_device(context)).max_cqe;
  CHECK(create_cq(context, limit));
  const std::string both = "cqe " + std::to_string(limit + 1) + " is above the device's limit of " +
                           std::to_string(limit);
  CHECK(create_cq(context, limit + 1).error().message() ==
        "ibv_create_cq on rxe0: Invalid argument (EINVAL): " + both);
  CHECK(
      create_cq(context, 16, nullptr, 99).error().detail().find("comp_vector 99 is outside 0..") ==
      0);
  const auto refused = rdma_context::open({.device_name = "rxe0", .cqe = limit + 1});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().detail() == "context_config." + both);
  const auto clamped =
      rdma_context::open({.device_name = "rxe0", .cqe = limit + 1, .clamp_cqe = true});
  REQUIRE(clamped);
  CHECK(clamped->cq(0)->cqe >= limit);
}

TEST_CASE("kernel: at every descriptor limit, opening succeeds or fails and leaves nothing") {
  const nothing_left check;
  const rlimit before = limit_of(RLIMIT_NOFILE);
  // The first open loads the provider and may keep descriptors of its own.
  rdma_context context({.device_name = "rxe0", .comp_channels = 4, .cqs = 4});
  REQUIRE(context.enable());
  REQUIRE(context.reset());
  const auto base = descriptors();  // counts ".", ".." and the one that counts
  std::size_t failed = 0;
  bool succeeded = false;
  for (rlim_t room = 0; room < 32 && !succeeded; ++room) {
    const rlimit tight{static_cast<rlim_t>(base) - 3 + room, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
    const auto enabled = context.enable();
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    succeeded = static_cast<bool>(enabled);
    if (succeeded) break;
    ++failed;
    INFO("room for " << room << ": " << enabled.error().message());
    CHECK((enabled.error().code() == EMFILE || enabled.error().code() == ENOSYS));
    CHECK(context.owned().total() == 0);
    CHECK(descriptors() == base);
    CHECK(run("rdma_baseline check") == 0);
    const bool by_verb = enabled.error().call() != verb::epoll_create1;
    if (by_verb)
      CHECK(enabled.error().detail().find("no descriptor left: RLIMIT_NOFILE is") !=
            std::string_view::npos);
  }
  CHECK(succeeded);
  CHECK(failed >= 6);  // command and async descriptors, epoll, four channels
  CHECK(context.reset());
}

TEST_CASE("kernel: over the locked-memory limit, ENOMEM names the limit") {
  const nothing_left check;
  const int status = as_nobody([] {
    const rlimit tight{65536, 65536};
    if (::setrlimit(RLIMIT_MEMLOCK, &tight) != 0) return 1;
    auto context = rdma_context::open({.device_name = "rxe0"});
    if (!context) return 2;
    std::vector<std::byte> memory(1 << 20);
    const auto mr = context->register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
    if (mr) return 3;
    if (mr.error().code() != ENOMEM || mr.error().call() != verb::reg_mr) return 4;
    if (mr.error().detail().find("RLIMIT_MEMLOCK 65536") == std::string_view::npos) return 5;
    if (!context->register_memory(std::span(memory).first(4096), IBV_ACCESS_LOCAL_WRITE)) return 6;
    return context->reset() ? 0 : 7;
  });
  CHECK(status == 0);
}

// Case 23.
TEST_CASE(
    "kernel: without permission on the node the error names it, and a search opens the other "
    "device") {
  const nothing_left check;
  REQUIRE(::chmod("/dev/infiniband/uverbs0", 0600) == 0);
  const int status = as_nobody([] {
    rdma_context asked({.device_name = "rxe0"});
    const auto enabled = asked.enable();
    // The errno is what libibverbs' second search for the node ended with: EACCES or ENOENT.
    if (enabled || enabled.error().call() != verb::open_device) return 1;
    if (enabled.error().detail() != "no permission on /dev/infiniband/uverbs0") return 2;
    if (enabled.error().device() != "rxe0") return 3;
    const auto other = rdma_context::open({});
    if (!other) return 4;
    return std::string(other->device()->device->name) == "rxe1" ? 0 : 5;
  });
  CHECK(status == 0);
  REQUIRE(::chmod("/dev/infiniband/uverbs0", 0666) == 0);
}

TEST_CASE("kernel: a port that is down opens by name paused, and resumes when it is up") {
  const nothing_left check;
  REQUIRE(run("ip link set dummy1 down") == 0);
  rdma_context context({.device_name = "rxe1"});
  REQUIRE(context.enable());
  CHECK(context.state() == context_state::paused);
  CHECK(context.ready());
  std::byte memory[4096];
  CHECK(context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE));
  const auto asked = rdma_context::open({.device_name = "rxe1", .port = 1});
  REQUIRE_FALSE(asked);
  CHECK(asked.error().code() == ENETDOWN);
  const auto searched = rdma_context::open({});
  REQUIRE(searched);
  CHECK(std::string(searched->device()->device->name) == "rxe0");
  REQUIRE(run("ip link set dummy1 up") == 0);
  CHECK(context.resume());
  CHECK(context.state() == context_state::enabled);
}

// Case 38.
TEST_CASE("kernel: 10,000 registrations of random sizes leave the number of mappings flat") {
  const nothing_left check;
  auto context = rdma_context::open({.device_name = "rxe0"});
  REQUIRE(context);
  std::vector<std::byte> memory(1 << 16);
  std::mt19937 random(20240601);
  std::uniform_int_distribution<std::size_t> size(1, memory.size());
  const auto cycle = [&] {
    const auto mr =
        context->register_memory(std::span(memory).first(size(random)), IBV_ACCESS_LOCAL_WRITE);
    return mr && context->unregister_memory(*mr);
  };
  REQUIRE(cycle());
  const auto before = mappings();
  int failed = 0;
  for (int i = 0; i < 10000; ++i) failed += cycle() ? 0 : 1;
  CHECK(failed == 0);
  CHECK(mappings() <= before + 2);
  CHECK(context->owned().regions == 0);
}

// Case 21.
TEST_CASE(
    "kernel: after reset() the link can be deleted at once; before, the delete waits for the "
    "context") {
  {
    const nothing_left check;
    rdma_context context({.device_name = "rxe1"});
    REQUIRE(context.enable());
    // An unfinished delete cannot be killed: it runs in the background, and ends when the context
    // is closed.
    REQUIRE(run("rdma link delete rxe1 & echo $! > /tmp/deleting") == 0);
    ::usleep(500000);
    CHECK(run("kill -0 $(cat /tmp/deleting) 2>/dev/null") == 0);
    CHECK(context.reset());
    CHECK(run("n=0; while kill -0 $(cat /tmp/deleting) 2>/dev/null; do n=$((n+1)); [ $n -lt 50 ] "
              "|| exit 1; sleep 0.1; done") == 0);
    REQUIRE(run("rdma link add rxe1 type rxe netdev dummy1") == 0);
  }
  rdma_context context({.device_name = "rxe1"});
  REQUIRE(context.enable());
  REQUIRE(context.reset());
  const auto began = std::chrono::steady_clock::now();
  CHECK(run("rdma link delete rxe1") == 0);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));
  REQUIRE(run("rdma link add rxe1 type rxe netdev dummy1") == 0);
}
