// Cases from the field: opening devices and contexts.
#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::opening_cases {

TEST_CASE(
    "case 1: every step of enable() fails in turn, with two devices and a port that is down") {
  shim::device_description first, second;
  first.name = "mlx5_0";
  first.ports.resize(2);
  first.ports[0].state = IBV_PORT_DOWN;
  second.name = "mlx5_1";
  const auto report = shim::sweep(
      []() -> result<void> {
        rdma_context context({.device_name = "mlx5_0", .comp_channels = 2, .cqs = 2});
        if (auto enabled = context.enable(); !enabled) {
          const bool nothing =
              context.state() == context_state::disabled && context.owned().total() == 0;
          return nothing ? enabled : failure(error(verb::none, ENOTRECOVERABLE));
        }
        return context.reset();
      },
      {.order = 2, .machine = {{first, second}}});
  INFO(report.text());
  CHECK(report.clean());
}

TEST_CASE(
    "case 4: a list that fails, an empty list, and a list followed by a failure: each list is "
    "freed, and the errors differ") {
  {
    shim::session s;
    s.fail(verb::get_device_list).with(ENOMEM);
    const auto context = rdma_context::open({});
    CHECK(context.error().call() == verb::get_device_list);
    CHECK(context.error().code() == ENOMEM);
    CHECK(s.calls(verb::free_device_list) == 0);
    CHECK(s.finish().empty());
  }
  {
    shim::session s(shim::simulated{.devices = {}});
    const auto context = rdma_context::open({});
    CHECK(context.error().code() == ENODEV);
    CHECK(context.error().detail() == "this machine has no RDMA device");
    CHECK(s.calls(verb::free_device_list) == 1);
    CHECK(s.finish().empty());
  }
  shim::session s;
  s.fail(verb::open_device).with(ENOMEM);
  CHECK_FALSE(rdma_context::open({}));
  CHECK(s.calls(verb::get_device_list) == s.calls(verb::free_device_list));
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 5: ibv_alloc_pd fails once with ENOMEM: the second open calls it again and succeeds") {
  shim::session s;
  rdma_context context({});
  s.fail(verb::alloc_pd).with(ENOMEM);
  CHECK(context.enable().error().call() == verb::alloc_pd);
  CHECK(context.enable());
  CHECK(s.calls(verb::alloc_pd) == 2);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 2: three devices, the second's port down: it opens paused, and memory can be registered "
    "on it") {
  shim::session s(
      {{{.name = "a"}, {.name = "b", .ports = {{.state = IBV_PORT_DOWN}}}, {.name = "c"}}});
  std::vector<rdma_context> contexts;
  for (const char* name : {"a", "b", "c"})
    contexts.push_back(or_throw(rdma_context::open({.device_name = name})));
  CHECK(contexts[0].state() == context_state::enabled);
  CHECK(contexts[1].state() == context_state::paused);
  CHECK(contexts[2].state() == context_state::enabled);
  std::byte memory[64];
  for (auto& context : contexts) {
    CHECK(context.ready());
    CHECK(context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE));
  }
  CHECK(std::string(contexts[1].device()->device->name) == "b");
  for (auto& context : contexts) CHECK(context.reset());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::opening_cases
