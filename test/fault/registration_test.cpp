// Memory registration: from many threads, against reset(), and against misuse.
#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::registration_test {

TEST_CASE(
    "registering and unregistering from many threads while the context is reset and opened again") {
  shim::session s;
  rdma_context context({.comp_channels = 1, .cqs = 1});
  REQUIRE(context.enable());
  std::atomic<bool> stop{false};
  std::atomic<int> registered{0}, refused{0}, unexpected{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::byte memory[64];
      while (!stop) {
        auto mr = context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
        if (!mr) {
          mr.error().code() == ESHUTDOWN ? ++refused : ++unexpected;
          std::this_thread::yield();
          continue;
        }
        ++registered;
        static_cast<void>(context.state());
        static_cast<void>(context.ready());
        static_cast<void>(context.owned());
        // A reset may have released it meanwhile: refused, or (after the next enable) unknown.
        if (auto gone = context.unregister_memory(*mr);
            !gone && gone.error().code() != ESHUTDOWN && gone.error().code() != EINVAL)
          ++unexpected;
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!context.reset() || !context.enable()) ++unexpected;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(unexpected == 0);
  CHECK(registered > 0);
  CHECK(context.reset());
  CHECK(context.owned().total() == 0);
  const auto findings = s.finish();
  INFO(test::lines(findings));
  CHECK(findings.empty());
}

TEST_CASE("unregistering twice, or something foreign, is an error that calls nothing") {
  shim::session s;
  rdma_context context({});
  REQUIRE(context.enable());
  std::byte memory[64];
  const auto mr = context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(mr);
  CHECK(context.unregister_memory(*mr));
  const auto calls = s.calls(verb::dereg_mr);
  const ibv_mr foreign{};
  for (const ibv_mr* wrong :
       {static_cast<const ibv_mr*>(*mr), &foreign, static_cast<const ibv_mr*>(nullptr)}) {
    const auto again = context.unregister_memory(wrong);
    REQUIRE_FALSE(again);
    CHECK(again.error().call() == verb::dereg_mr);
    CHECK(again.error().code() == EINVAL);
  }
  CHECK(s.calls(verb::dereg_mr) == calls);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("a failed deregistration keeps the region, and the next one succeeds") {
  shim::session s;
  rdma_context context({});
  REQUIRE(context.enable());
  std::byte memory[64];
  const auto mr = context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(mr);
  s.fail(verb::dereg_mr).with(EBUSY);
  CHECK_FALSE(context.unregister_memory(*mr));
  CHECK(context.owned().regions == 1);
  CHECK(context.registered_bytes() == 64);
  CHECK(context.unregister_memory(*mr));
  CHECK(context.owned().regions == 0);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("a failed registration leaves nothing behind") {
  shim::session s;
  rdma_context context({});
  REQUIRE(context.enable());
  std::byte memory[64];
  for (const verb call : {verb::allocate, verb::reg_mr}) {
    try {
      s.fail(call).with(ENOMEM);
    } catch (const std::logic_error&) {
      CHECK(call == verb::allocate);  // Clang's ThreadSanitizer has an operator new of its own
      continue;
    }
    const auto mr = context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
    REQUIRE_FALSE(mr);
    CHECK(mr.error().call() == call);
    CHECK(context.owned().regions == 0);
    CHECK(s.live(shim::object_kind::mr) == 0);
  }
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("registration is refused before the context is open and after it is closed") {
  shim::session s;
  rdma_context context({});
  std::byte memory[64];
  const auto refused = [&] {
    const auto mr = context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
    return !mr && mr.error().code() == ESHUTDOWN && mr.error().call() == verb::reg_mr;
  };
  CHECK(refused());
  REQUIRE(context.enable());
  CHECK(context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE));
  REQUIRE(context.reset());
  CHECK(refused());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::registration_test
