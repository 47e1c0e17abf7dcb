// File descriptors.
#include <fcntl.h>
#include <sys/eventfd.h>

#include "suite.hpp"
#include "support/teardown.hpp"
#include "support/trace.hpp"

namespace ibvxx::fd_test {

TEST_CASE("unique_fd closes its descriptor; 0 is a descriptor and -1 is none") {
  shim::session s;
  {
    auto epoll = epoll_create();
    REQUIRE(epoll);
    CHECK(s.live(shim::object_kind::descriptor) == 1);
  }
  CHECK(s.live() == 0);
  CHECK_FALSE(unique_fd());
  unique_fd zero(0);
  CHECK(zero);
  CHECK(zero.release() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("a close that fails is reported, and the descriptor is not closed a second time") {
  shim::session s;
  const test::teardown_catcher teardown;
  auto epoll = epoll_create();
  REQUIRE(epoll);
  s.fail(verb::close).with(EINTR);
  const auto closed = epoll->reset();
  REQUIRE_FALSE(closed);
  CHECK(closed.error().call() == verb::close);
  CHECK(closed.error().code() == EINTR);
  CHECK_FALSE(*epoll);
  CHECK(epoll->reset());
  CHECK(s.calls(verb::close) == 1);
  CHECK(teardown.count() == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("epoll and fcntl errors name the descriptors") {
  shim::session s;
  auto epoll = epoll_create();
  REQUIRE(epoll);
  const auto added = epoll_add(epoll->get(), 9999, EPOLLIN, 0);
  REQUIRE_FALSE(added);
  CHECK(added.error().code() == EBADF);
  CHECK(added.error().detail() ==
        "adding descriptor 9999 to epoll descriptor " + std::to_string(epoll->get()));
  const auto set = set_nonblocking(9999);
  REQUIRE_FALSE(set);
  CHECK(set.error().message() == "fcntl: Bad file descriptor (EBADF): F_GETFL of descriptor 9999");
  CHECK(epoll->reset());
  CHECK(s.finish().empty());
}

TEST_CASE("set_nonblocking sets the flag, and makes one call only when it is set already") {
  shim::session s;
  const unique_fd fd(::eventfd(0, EFD_CLOEXEC));
  REQUIRE(set_nonblocking(fd.get()));
  CHECK((::fcntl(fd.get(), F_GETFL) & O_NONBLOCK) != 0);
  const auto before = s.calls(verb::fcntl);
  CHECK(set_nonblocking(fd.get()));
  CHECK(s.calls(verb::fcntl) == before + 1);
  CHECK(s.finish().empty());
}

TEST_CASE("the shim reports a descriptor leak") {
  shim::session s;
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  const auto findings = s.finish();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == shim::finding_kind::descriptor_leak);
  CHECK(findings[0].text.find("descriptor " + std::to_string(fd) +
                              ", made by epoll_create1 (call 1), was never closed") == 0);
  ::close(fd);
}

TEST_CASE(
    "the shim reports a double close, and the close of a descriptor that belongs to a channel") {
  shim::session s;
  auto list = get_device_list();
  auto context = open_device((*list)[0]);
  auto channel = create_comp_channel(*context);
  REQUIRE(channel);
  CHECK(::close((*channel)->fd) == -1);
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  CHECK(::close(fd) == 0);
  CHECK(::close(fd) == -1);
  CHECK(channel->reset());
  CHECK(context->reset());
  *list = device_list();
  const auto findings = s.finish();
  INFO(test::lines(findings));
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].kind == shim::finding_kind::double_close);
  CHECK(findings[0].text.find("belongs to completion channel#1 of sim0") != std::string::npos);
  CHECK(findings[1].kind == shim::finding_kind::double_close);
  CHECK(findings[1].text.find("closed, made by epoll_create1") != std::string::npos);
}

}  // namespace ibvxx::fd_test
