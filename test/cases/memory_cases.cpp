// Cases from the field: memory. More of registering from many threads is in
// fault/registration_test.cpp.
#include <sys/eventfd.h>

#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::memory_cases {

TEST_CASE(
    "case 35: three contexts, registration fails on the third: the caller undoes two, and only the "
    "one that failed is retried") {
  shim::session s(shim::simulated{{{.name = "a"}, {.name = "b"}, {.name = "c"}}});
  std::vector<rdma_context> contexts;
  for (const char* name : {"a", "b", "c"})
    contexts.push_back(or_throw(rdma_context::open({.device_name = name})));
  std::byte memory[64];
  s.fail(verb::reg_mr).nth(3).with(ENOMEM);
  std::vector<ibv_mr*> registered;
  for (auto& context : contexts) {
    const auto mr = context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
    if (!mr) break;
    registered.push_back(*mr);
  }
  REQUIRE(registered.size() == 2);
  s.fail(verb::dereg_mr).on(registered[1]).with(EBUSY);
  CHECK(contexts[0].unregister_memory(registered[0]));
  CHECK(contexts[1].unregister_memory(registered[1]).error().code() == EBUSY);
  CHECK(contexts[1].owned().regions == 1);
  const auto calls = s.calls(verb::dereg_mr);
  CHECK(contexts[1].unregister_memory(registered[1]));
  CHECK(s.calls(verb::dereg_mr) == calls + 1);
  for (auto& context : contexts) CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 37: a dmabuf registration closes its descriptor exactly once, whether it succeeds or "
    "fails") {
  shim::session s(shim::simulated{{shim::device_description::hardware()}});
  auto context = or_throw(open_device((*get_device_list())[0]));
  auto pd = or_throw(alloc_pd(context));
  for (const int code : {0, EOPNOTSUPP, EINVAL}) {
    INFO("with errno " << code);
    unique_fd fd(::eventfd(0, EFD_CLOEXEC));
    const int number = fd.get();
    if (code != 0) s.fail(verb::reg_dmabuf_mr).with(code);
    const auto before = s.calls(verb::close);
    auto mr = reg_dmabuf_mr(pd, 0, 4096, 0, std::move(fd), IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr.has_value() == (code == 0));
    if (!mr) CHECK(mr.error().code() == code);
    CHECK(s.calls(verb::close) == before + 1);
    CHECK(::fcntl(number, F_GETFD) == -1);
    if (mr) CHECK(mr->reset());
  }
  CHECK(pd.reset());
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 33: a registration that stalls in the kernel blocks neither another one nor state(), "
    "only reset()") {
  shim::session s;
  rdma_context context({});
  REQUIRE(context.enable());
  std::byte memory[64];
  std::atomic<bool> stalled{false}, go{false}, reset_done{false};
  s.at(verb::reg_mr).run([&] {
    stalled = true;
    while (!go) std::this_thread::yield();
  });
  std::thread slow(
      [&] { CHECK(context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE)); });
  while (!stalled) std::this_thread::yield();
  const auto overlapping = context.register_memory(std::span(memory, 32), IBV_ACCESS_LOCAL_WRITE);
  CHECK(overlapping);
  CHECK(context.state() == context_state::enabled);

  std::thread reset([&] {
    CHECK(context.reset());
    reset_done = true;
  });
  while (context.state() != context_state::releasing) std::this_thread::yield();
  while (context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE))
    std::this_thread::yield();
  CHECK_FALSE(reset_done);
  go = true;
  slow.join();
  reset.join();
  CHECK(context.owned().total() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 33: one range registered by two threads at once has two keys; a failure leaves none") {
  shim::session s;
  auto context = or_throw(rdma_context::open({}));
  std::byte memory[128];
  constexpr int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  std::atomic<bool> stalled{false}, go{false};
  s.at(verb::reg_mr).run([&] {
    stalled = true;
    while (!go) std::this_thread::yield();
  });
  ibv_mr* first = nullptr;
  std::thread slow(
      [&] { first = context.register_memory(std::span(memory), access).value_or(nullptr); });
  while (!stalled) std::this_thread::yield();
  const auto second = context.register_memory(std::span(memory).subspan(64), access);
  s.fail(verb::reg_mr).with(ENOMEM);
  const auto third = context.register_memory(std::span(memory), access);
  go = true;
  slow.join();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->lkey != (*second)->lkey);
  CHECK(first->rkey != (*second)->rkey);
  REQUIRE_FALSE(third);
  CHECK(third.error().code() == ENOMEM);
  CHECK(context.owned().regions == 2);
  CHECK(context.unregister_memory(first));
  CHECK(context.unregister_memory(*second));
  CHECK(s.live(shim::object_kind::mr) == 0);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::memory_cases
