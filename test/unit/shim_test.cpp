// The shim itself: sessions, rules, descriptions, and what it says of misuse.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "suite.hpp"
#include "support/refusal.hpp"
#include "support/trace.hpp"

namespace ibvxx::shim_test {
using shim::finding_kind;

namespace {

using test::reason;

std::string refused_device(const shim::device_description& description) {
  return reason([&] { shim::session s({{description}}); });
}

}  // namespace

TEST_CASE("a second session while one is in force is refused, and the first continues") {
  shim::session s;
  CHECK(reason([] { shim::session second; }) ==
        "a shim session is in force already: only one at a time");
  CHECK(get_device_list()->size() == 1);
  CHECK(s.finish().empty());
  shim::session after;
  CHECK(after.finish().empty());
}

TEST_CASE("rules that make no sense are refused with the reason") {
  shim::session s;
  CHECK(reason([&] { return s.fail(verb::create_cq).nth(0); }).find("calls count from 1") !=
        std::string::npos);
  CHECK(reason([&] { return s.fail(verb::create_cq).times(0); }).find("would inject nothing") !=
        std::string::npos);
  CHECK(reason([&] { return s.fail(verb::create_cq).on(nullptr); }).find("would match nothing") !=
        std::string::npos);
  CHECK(reason([&] { return s.fail(verb::create_cq).with(0); }).find("an errno is in 1..4095") !=
        std::string::npos);
  CHECK(reason([&] {
          return s.fail(verb::create_cq).with(-EINVAL);
        }).find("an errno is in 1..4095") != std::string::npos);
  const std::string allocating = reason([&] { return s.fail(verb::allocate).with(EIO); });
  // Clang's ThreadSanitizer has an operator new of its own.
  if (allocating.find("is not intercepted") == std::string::npos)
    CHECK(allocating.find("ENOMEM only") != std::string::npos);
  CHECK(reason([&] { return s.fail(verb::free_device_list); }).find("cannot fail") !=
        std::string::npos);
  CHECK(reason([&] { return s.fail(verb::none); }).find("not intercepted") != std::string::npos);
  CHECK(s.finish().empty());
}

TEST_CASE("a rule that never fired is a finding, unless it is cleared") {
  {
    shim::session s;
    s.fail(verb::create_cq).nth(2).with(ENOMEM);
    const auto findings = s.finish();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].kind == finding_kind::unfired_rule);
    CHECK(findings[0].text.find("ibv_create_cq, matching call 2 -> ENOMEM, once never fired") == 0);
  }
  shim::session s;
  s.fail(verb::create_cq).with(ENOMEM);
  s.clear_rules();
  CHECK(s.finish().empty());
}

TEST_CASE("a session that ends without finish() writes its findings to standard error and aborts") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child != -1);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);
    {
      shim::session s;
      s.fail(verb::create_cq).with(ENOMEM);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  INFO(text);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK(text.find("ibv_create_cq, matching call 1 -> ENOMEM, once never fired") !=
        std::string::npos);
}

TEST_CASE("rules choose by nth, times, object and thread") {
  shim::session s;
  auto context = or_throw(open_device((*get_device_list())[0]));
  auto a = or_throw(alloc_pd(context));
  auto b = or_throw(alloc_pd(context));

  s.fail(verb::alloc_pd).nth(2).times(2).with(ENOMEM);
  CHECK(alloc_pd(context));
  CHECK(alloc_pd(context).error().code() == ENOMEM);
  CHECK(alloc_pd(context).error().code() == ENOMEM);
  CHECK(alloc_pd(context));

  s.fail(verb::dealloc_pd).on(b.get()).with(EIO);
  CHECK(a.reset());
  CHECK(b.reset().error().code() == EIO);
  CHECK(b.reset());

  s.fail(verb::alloc_pd).on_this_thread().with(EAGAIN);
  std::thread([&] { CHECK(alloc_pd(context)); }).join();
  CHECK(alloc_pd(context).error().code() == EAGAIN);

  s.fail(verb::query_device).persistently().with(EIO);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(query_device(context));
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("device descriptions that make no sense are refused, naming the field") {
  CHECK(refused_device({.name = ""}).find("name is empty") != std::string::npos);
  CHECK(refused_device({.name = std::string(64, 'x')}).find("more than 63 characters") !=
        std::string::npos);
  CHECK(refused_device({.ports = {}}).find("the number of ports is outside 1..255") !=
        std::string::npos);
  CHECK(refused_device({.completion_vectors = 0}).find("completion_vectors is below 1") !=
        std::string::npos);
  CHECK(
      refused_device({.ports = {{.max_mtu = IBV_MTU_256}}}).find("port 1: active_mtu is outside") !=
      std::string::npos);
  CHECK(refused_device({.ports = {{.gid_table_size = 1}}})
            .find("2 gids do not fit gid_table_size 1") != std::string::npos);
  CHECK(refused_device({.ports = {{.link_layer = 9}}}).find("neither Ethernet nor InfiniBand") !=
        std::string::npos);
  CHECK(reason([] {
          shim::session s({{{.name = "a"}, {.name = "a"}}});
        }).find("two devices have this name") != std::string::npos);
  CHECK(reason([] { static_cast<void>(shim::gid("nonsense")); }).find("is no GID") !=
        std::string::npos);
  shim::session s;
  CHECK(reason([&] {
          s.set_port_state("sim9", 1, IBV_PORT_DOWN);
        }).find("no simulated device 'sim9'") != std::string::npos);
  CHECK(reason([&] { s.set_port_state("sim0", 2, IBV_PORT_DOWN); }).find("has no port 2") !=
        std::string::npos);
  CHECK(reason([&] { s.set_gid("sim0", 1, 16, {}); }).find("outside 0..15") != std::string::npos);
  CHECK(s.finish().empty());
}

TEST_CASE(
    "use after destroy, foreign pointers and objects of the wrong kind are findings and EINVAL") {
  shim::session s;
  auto list = get_device_list();
  ibv_context* context = ::ibv_open_device((*list)[0]);
  ibv_pd* pd = ::ibv_alloc_pd(context);
  ibv_cq* cq = ::ibv_create_cq(context, 1, nullptr, nullptr, 0);
  CHECK(::ibv_destroy_cq(cq) == 0);
  CHECK(::ibv_req_notify_cq(cq, 0) == EINVAL);
  ibv_wc completion;
  CHECK(::ibv_poll_cq(cq, 1, &completion) == -1);
  CHECK(::ibv_dealloc_pd(nullptr) == EINVAL);
  ibv_pd foreign{};
  CHECK(::ibv_dealloc_pd(&foreign) == EINVAL);
  CHECK(::ibv_dealloc_pd(reinterpret_cast<ibv_pd*>(context)) == EINVAL);
  CHECK(::ibv_dealloc_pd(pd) == 0);
  CHECK(::ibv_close_device(context) == 0);
  errno = 0;
  CHECK(::ibv_alloc_pd(context) == nullptr);
  CHECK(errno == EINVAL);
  *list = device_list();
  const auto findings = s.finish();
  INFO(test::lines(findings));
  REQUIRE(findings.size() == 6);
  CHECK(test::count(findings, finding_kind::use_after_destroy) == 3);
  CHECK(test::count(findings, finding_kind::foreign_pointer) == 2);
  CHECK(test::count(findings, finding_kind::wrong_kind) == 1);
  CHECK(
      findings[0].text.find("CQ#1 of sim0, made by ibv_create_cq (call 4), destroyed by call 5") !=
      std::string::npos);
}

TEST_CASE("an open device may be opened again after its list was freed") {
  shim::session s;
  auto first = or_throw(open_device((*get_device_list())[0]));
  auto second = or_throw(open_device(first->device));
  CHECK(second.reset());
  CHECK(first.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("opening a device whose list was freed is a finding") {
  shim::session s;
  auto list = get_device_list();
  ibv_device* device = (*list)[0];
  *list = device_list();
  ibv_context* context = ::ibv_open_device(device);
  CHECK(::ibv_close_device(context) == 0);
  const auto findings = s.finish();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].text.find("after the device list was freed") != std::string::npos);
}

TEST_CASE("calls are counted and traced; objects of one session are not known to the next") {
  ibv_context* left = nullptr;
  {
    shim::session s;
    auto list = get_device_list();
    left = ::ibv_open_device((*list)[0]);
    *list = device_list();
    CHECK(s.calls(verb::open_device) == 1);
    CHECK(s.calls(verb::alloc_pd) == 0);
    CHECK(s.live(shim::object_kind::context) == 1);
    const auto trace = s.trace();
    REQUIRE(trace.size() == s.calls());
    CHECK(trace[0].call == verb::get_device_list);
    CHECK(trace.back().call == verb::free_device_list);
    CHECK(trace.back().subject == "device list#1");
    CHECK(test::count(s.finish(), finding_kind::leak) == 1);
  }
  CHECK(::ibv_alloc_pd(left) ==
        nullptr);  // after the session: recognised, said so on standard error, refused
  shim::session s;
  CHECK(::ibv_alloc_pd(left) == nullptr);
  CHECK(test::count(s.finish(), finding_kind::foreign_pointer) == 1);
}

TEST_CASE("a sweep of an impossible order is refused") {
  CHECK(reason([] {
          static_cast<void>(shim::sweep([] { return result<void>(); }, {.order = 3}));
        }).find("order 3") != std::string::npos);
}

TEST_CASE("a simulated port answers the compatibility symbol within its 48 bytes") {
  shim::session s;
  auto context = or_throw(open_device((*get_device_list())[0]));
  struct {
    unsigned char attributes[48];
    unsigned char guard[64];
  } room;
  std::memset(&room, 0xa5, sizeof room);
#pragma push_macro("ibv_query_port")
#undef ibv_query_port
  CHECK(::ibv_query_port(context.get(), 1,
                         reinterpret_cast<_compat_ibv_port_attr*>(room.attributes)) == 0);
#pragma pop_macro("ibv_query_port")
  for (const unsigned char byte : room.guard) CHECK(byte == 0xa5);
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::shim_test
