// Cases from the field: memory. Registration from many threads and against stalls is in
// fault/registration_test.cpp (33).
#include <sys/eventfd.h>

#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::memory_cases {

TEST_CASE(
    "case 35: three contexts, registration fails on the third: the caller undoes two, and a stuck "
    "one is retried alone") {
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
    "case 37: a dmabuf registration closes the descriptor that it was given exactly once, whatever "
    "comes of it") {
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

}  // namespace ibvxx::memory_cases
