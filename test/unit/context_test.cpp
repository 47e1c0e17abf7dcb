// Opening a context: choices, refusals, and states.
#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::context_test {

namespace {

shim::device_description device(const char* name, const std::vector<ibv_port_state>& states) {
  shim::device_description made;
  made.name = name;
  made.ports.clear();
  for (const auto state : states) made.ports.push_back({.state = state});
  return made;
}

std::string refusal(const context_config& config, verb call, int code) {
  rdma_context context(config);
  const auto enabled = context.enable();
  REQUIRE_FALSE(enabled);
  CHECK(enabled.error().call() == call);
  CHECK(enabled.error().code() == code);
  CHECK(context.state() == context_state::disabled);
  return std::string(enabled.error().detail());
}

}  // namespace

TEST_CASE(
    "a configuration that cannot be is refused before any verb, naming the field and the limit") {
  shim::session s;
  CHECK(refusal({.port = -1}, verb::none, EINVAL) == "context_config.port -1 is outside 0..255");
  CHECK(refusal({.port = 256}, verb::none, EINVAL) == "context_config.port 256 is outside 0..255");
  CHECK(refusal({.gid_index = -2}, verb::none, EINVAL) ==
        "context_config.gid_index -2 is below -1");
  CHECK(refusal({.comp_channels = -1}, verb::none, EINVAL) ==
        "context_config.comp_channels -1 is below 0");
  CHECK(refusal({.cqs = 0}, verb::none, EINVAL) == "context_config.cqs 0 is below 1");
  CHECK(refusal({.cqs = -5}, verb::none, EINVAL) == "context_config.cqs -5 is below 1");
  CHECK(refusal({.cqe = 0}, verb::none, EINVAL) == "context_config.cqe 0 is below 1");
  CHECK(refusal({.cqe = -1}, verb::none, EINVAL) == "context_config.cqe -1 is below 1");
  CHECK(refusal({.gids = {.network_device = static_cast<network_device_need>(9)}}, verb::none,
                EINVAL) == "gid_policy.network_device is not a network_device_need");
  CHECK(refusal({.release_timeout = std::chrono::milliseconds(-1)}, verb::none, EINVAL) ==
        "context_config.release_timeout -1 ms is below 0");
  CHECK(s.calls(verb::get_device_list) == 0);
  CHECK(s.finish().empty());
}

TEST_CASE(
    "what the device cannot do is refused before anything is made on it, naming the field and the "
    "limit") {
  shim::session s({{device("mlx5_0", {IBV_PORT_ACTIVE}), device("mlx5_1", {IBV_PORT_ACTIVE})}});
  CHECK(refusal({.device_name = "mlx5"}, verb::get_device_list, ENODEV) ==
        "context_config.device_name 'mlx5' is none of the 2 device(s): mlx5_0, mlx5_1");
  CHECK(refusal({.device_name = "mlx5_1", .port = 2}, verb::query_port, EINVAL) ==
        "context_config.port 2 is above the device's port count of 1");
  CHECK(refusal({.gid_index = 16}, verb::query_gid_table, EINVAL) ==
        "context_config.gid_index 16 is outside the table of port 1: 0..15");
  CHECK(refusal({.gid_index = 5}, verb::query_gid_table, ENODATA) ==
        "context_config.gid_index 5 of port 1 is an empty slot");
  CHECK(s.calls(verb::alloc_pd) == 0);
  CHECK(refusal({.cqe = 70000}, verb::create_cq, EINVAL) ==
        "context_config.cqe 70000 is above the device's limit of 32767");
  CHECK(s.calls(verb::create_cq) == 0);
  CHECK(s.live() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("more CQs than the device has is refused, the notification CQ counted") {
  shim::device_description small;
  small.limits.max_cq = 4;
  shim::session s({{small}});
  CHECK(refusal({.cqs = 4}, verb::create_cq, EINVAL) ==
        "context_config.cqs 4 is above the device's limit of 3");
  auto context = rdma_context::open({.cqs = 4, .notification_cq = false});
  REQUIRE(context);
  CHECK(context->notification_cq() == nullptr);
  CHECK(context->cq_count() == 4);
  CHECK(context->reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "without a name, the first device with an active port is taken, and nothing of the others is "
    "kept") {
  shim::session s({{device("a", {IBV_PORT_DOWN}), device("b", {IBV_PORT_INIT, IBV_PORT_ACTIVE}),
                    device("c", {IBV_PORT_ACTIVE})}});
  auto context = rdma_context::open({});
  REQUIRE(context);
  CHECK(std::string(context->device()->device->name) == "b");
  CHECK(context->port() == 2);
  CHECK(s.live(shim::object_kind::context) == 1);
  CHECK(context->reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "in a search, a device that cannot be opened is passed over; if none can, the first error is "
    "told") {
  shim::session s({{device("a", {IBV_PORT_ACTIVE}), device("b", {IBV_PORT_ACTIVE})}});
  s.fail(verb::open_device).with(EACCES);
  auto context = rdma_context::open({});
  REQUIRE(context);
  CHECK(std::string(context->device()->device->name) == "b");
  CHECK(context->reset());
  s.fail(verb::open_device).persistently().with(EACCES);
  context = rdma_context::open({});
  REQUIRE_FALSE(context);
  CHECK(context.error().device() == "a");
  CHECK(context.error().code() == EACCES);
  CHECK(s.finish().empty());
}

TEST_CASE("no device with an active port is an error that says so") {
  shim::session s({{device("a", {IBV_PORT_DOWN, IBV_PORT_INIT})}});
  const auto context = rdma_context::open({});
  REQUIRE_FALSE(context);
  CHECK(context.error().message() ==
        "ibv_query_port on a: Network is down (ENETDOWN): no port is ACTIVE");
  CHECK(s.live() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("CQs go round channels and completion vectors in turn") {
  shim::device_description three;
  three.completion_vectors = 3;
  shim::session s({{three}});
  auto context = rdma_context::open({.comp_channels = 3, .cqs = 8});
  REQUIRE(context);
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(context->cq(i)->channel == context->comp_channel(i % 3));
  CHECK(context->notification_cq()->channel == context->comp_channel(0));
  CHECK(context->cq(8) == nullptr);
  CHECK(context->reset());
  CHECK(s.finish().empty());
}

TEST_CASE("zero channels make polled CQs: no channel, nothing armed") {
  shim::session s;
  auto context = rdma_context::open({.comp_channels = 0, .cqs = 2});
  REQUIRE(context);
  CHECK(context->comp_channel(0) == nullptr);
  CHECK(context->cq(0)->channel == nullptr);
  CHECK(s.calls(verb::create_comp_channel) == 0);
  CHECK(s.calls(verb::req_notify_cq) == 0);
  CHECK(context->reset());
  CHECK(s.finish().empty());
}

TEST_CASE("the state follows what is owned, the port, and pause and resume") {
  shim::session s;
  rdma_context context({});
  CHECK(context.state() == context_state::disabled);
  const auto not_ready = context.ready();
  REQUIRE_FALSE(not_ready);
  CHECK(not_ready.error().message() ==
        "ibvxx: Resource temporarily unavailable (EAGAIN): the context is disabled");
  CHECK_FALSE(context.pause());
  CHECK_FALSE(context.resume());

  REQUIRE(context.enable());
  CHECK(context.state() == context_state::enabled);
  CHECK(context.pause());
  CHECK(context.state() == context_state::paused);
  CHECK(context.ready());
  CHECK(context.resume());
  CHECK(context.state() == context_state::enabled);

  CHECK(context.pause());
  s.set_port_state("sim0", 1, IBV_PORT_DOWN);
  CHECK(context.resume());
  CHECK(context.state() == context_state::paused);
  s.set_port_state("sim0", 1, IBV_PORT_ACTIVE);
  CHECK(context.resume());
  CHECK(context.state() == context_state::enabled);

  CHECK(context.pause());
  CHECK(context.reset());
  CHECK(context.state() == context_state::disabled);
  CHECK(context.enable());
  CHECK(context.state() == context_state::enabled);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("a context knows the limits of its device while it is open") {
  shim::device_description description;
  description.limits.max_qp = 77;
  shim::session s{shim::simulated{{description}}};
  auto context = rdma_context::open({});
  REQUIRE(context);
  CHECK(context->device_attributes().max_qp == 77);
  CHECK(context->reset());
  CHECK(context->device_attributes().max_qp == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("a port that goes down while the context opens leaves it paused, not enabled") {
  shim::session s;
  s.at(verb::alloc_pd).run([&] { s.set_port_state("sim0", 1, IBV_PORT_DOWN); });
  auto context = rdma_context::open({});
  REQUIRE(context);
  CHECK(context->state() == context_state::paused);
  CHECK(context->port_attributes().state == IBV_PORT_DOWN);
  CHECK(context->reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "no lock is held while a verb runs: what is half open is nobody's, what goes is releasing") {
  shim::session s;
  rdma_context context({.cqs = 2});
  std::size_t looked = 0;
  for (const verb call : {verb::alloc_pd, verb::create_cq, verb::req_notify_cq})
    s.at(call).run([&] {
      ++looked;
      CHECK(context.state() == context_state::disabled);
      CHECK(context.owned().total() == 0);
      CHECK(context.device() == nullptr);
      CHECK_FALSE(context.ready());
    });
  for (const verb call : {verb::destroy_cq, verb::dealloc_pd, verb::close_device})
    s.at(call).run([&] {
      ++looked;
      CHECK(context.state() == context_state::releasing);
      CHECK_FALSE(context.ready());
    });
  CHECK(context.enable());
  CHECK(context.reset());
  CHECK(looked == 6);
  CHECK(s.finish().empty());
}

TEST_CASE("changes take turns: an enable() waits for the reset() that is under way") {
  shim::session s;
  rdma_context context({});
  REQUIRE(context.enable());
  std::atomic<bool> begun{false}, done{false}, enabled{false};
  std::thread other;
  s.at(verb::dealloc_pd).run([&] {
    other = std::thread([&] {
      begun = true;
      enabled = context.enable().has_value();
      done = true;
    });
    while (!begun) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(done);
  });
  CHECK(context.reset());
  other.join();
  CHECK(enabled);
  CHECK(context.state() == context_state::enabled);
  CHECK(s.calls(verb::open_device) == 2);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("the descriptors of a context are non-blocking and wake its epoll descriptor") {
  shim::session s;
  auto context = rdma_context::open({.comp_channels = 2, .cqs = 2});
  REQUIRE(context);
  for (const int fd :
       {context->device()->async_fd, context->comp_channel(0)->fd, context->comp_channel(1)->fd}) {
    CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    const std::uint64_t one = 1;
    REQUIRE(::write(fd, &one, sizeof one) == sizeof one);
    epoll_event event{};
    CHECK(::epoll_wait(context->epoll_fd(), &event, 1, 0) == 1);
    CHECK(std::uint64_t{event.data.u64} == static_cast<std::uint64_t>(fd));
    std::uint64_t taken = 0;
    REQUIRE(::read(fd, &taken, sizeof taken) == sizeof taken);
  }
  CHECK(context->reset());
  CHECK(s.finish().empty());
}

TEST_CASE("the destructor, a move assignment and a memory registry keep errno") {
  shim::session s;
  const auto disturb = [&](verb call) { s.at(call).run([] { errno = EIO; }); };
  {
    auto first = or_throw(rdma_context::open({}));
    auto second = or_throw(rdma_context::open({}));
    disturb(verb::destroy_cq);
    errno = EXDEV;
    first = std::move(second);
    CHECK(errno == EXDEV);
    disturb(verb::dealloc_pd);
    errno = EXDEV;
  }
  CHECK(errno == EXDEV);

  const auto device = or_throw(open_device((*get_device_list())[0]));
  const auto pd = or_throw(alloc_pd(device));
  std::byte memory[64];
  {
    detail::memory_registry regions;
    regions.open(pd);
    REQUIRE(regions.add(memory, sizeof memory, 0));
    disturb(verb::dereg_mr);
    errno = EXDEV;
  }
  CHECK(errno == EXDEV);
}

}  // namespace ibvxx::context_test
