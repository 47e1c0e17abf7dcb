// Findings about objects and descriptors: leaked, destroyed, foreign, or in use.
#include <sys/epoll.h>
#include <unistd.h>

#include "machine.hpp"

namespace ibvxx::findings_objects_test {

using test::finding_kind;
using test::machine;

TEST_CASE_METHOD(machine, "an object that is never destroyed is a leak") {
  // finding: leak
  static_cast<void>(::ibv_alloc_pd(context));
  // end
  // The device is closed although that is alive.
  s.expect(finding_kind::destroyed_in_use, "context#1 of sim0 while it is used by PD#2 of sim0");
  check(finding_kind::leak, {"PD#2 of sim0, made by ibv_alloc_pd (call ", "was never destroyed"});
}

TEST_CASE_METHOD(machine, "an object that is destroyed is none") {
  // no finding: leak
  CHECK(::ibv_dealloc_pd(::ibv_alloc_pd(context)) == 0);
  check_clean();
}

TEST_CASE_METHOD(machine, "a descriptor that is never closed is a leak") {
  // finding: descriptor leak
  static_cast<void>(::epoll_create1(0));
  // end
  check(finding_kind::descriptor_leak, {"made by epoll_create1 (call ", "was never closed"});
}

TEST_CASE_METHOD(machine, "a descriptor that is closed once is neither leaked nor closed twice") {
  // no finding: descriptor leak
  // no finding: double close
  CHECK(::close(::epoll_create1(0)) == 0);
  CHECK(::close(::dup(context->async_fd)) == 0);  // not made by anything that is followed
  check_clean();
}

TEST_CASE_METHOD(machine, "an object is destroyed twice") {
  // finding: double destroy
  ibv_pd* other = ::ibv_alloc_pd(context);
  ::ibv_dealloc_pd(other);
  ::ibv_dealloc_pd(other);
  // end
  check(
      finding_kind::double_destroy,
      {"ibv_dealloc_pd (call ", "PD#2 of sim0, made by ibv_alloc_pd (call ", "destroyed by call "});
}

TEST_CASE_METHOD(machine, "an object is used after it was destroyed") {
  // finding: use after destroy
  ibv_pd* other = ::ibv_alloc_pd(context);
  ::ibv_dealloc_pd(other);
  ::ibv_alloc_mw(other, IBV_MW_TYPE_1);
  // end
  CHECK(errno == EINVAL);
  check(finding_kind::use_after_destroy,
        {"ibv_alloc_mw (call ", "PD#2 of sim0, made by ibv_alloc_pd (call ", "destroyed by call "});
}

TEST_CASE_METHOD(machine,
                 "a destroy that failed keeps the object: it is used and destroyed later") {
  // no finding: double destroy
  // no finding: use after destroy
  ibv_pd* other = ::ibv_alloc_pd(context);
  s.fail(verb::dealloc_pd).with(EBUSY);
  CHECK(::ibv_dealloc_pd(other) == EBUSY);
  CHECK(::ibv_dealloc_mw(::ibv_alloc_mw(other, IBV_MW_TYPE_1)) == 0);
  CHECK(::ibv_dealloc_pd(other) == 0);
  check_clean();
}

TEST_CASE_METHOD(machine, "an object is destroyed while others need it") {
  // finding: destroyed in use
  ::ibv_dealloc_pd(pd);
  // end
  check(finding_kind::destroyed_in_use,
        {"PD#1 of sim0 while it is used by MR#1 of sim0, QP#1 of sim0, QP#2 of sim0"});
}

TEST_CASE_METHOD(machine, "children are destroyed before their parent") {
  // no finding: destroyed in use
  ibv_pd* other = ::ibv_alloc_pd(context);
  ibv_mw* window = ::ibv_alloc_mw(other, IBV_MW_TYPE_1);
  CHECK(::ibv_dealloc_mw(window) == 0);
  CHECK(::ibv_dealloc_pd(other) == 0);
  check_clean();
}

TEST_CASE_METHOD(machine, "a pointer that no verb returned") {
  // finding: foreign pointer
  ibv_pd forged{};
  ::ibv_dealloc_pd(&forged);
  // end
  check(finding_kind::foreign_pointer,
        {"ibv_dealloc_pd (call ", "which no verb of this session returned as PD"});
}

TEST_CASE_METHOD(machine, "an object of another kind") {
  // finding: wrong kind of object
  ::ibv_dealloc_pd(reinterpret_cast<ibv_pd*>(context));
  // end
  check(finding_kind::wrong_kind, {"was given context#1 of sim0 where a PD belongs"});
}

TEST_CASE_METHOD(machine, "an extended queue is one of the ordinary kind, too") {
  // no finding: foreign pointer
  // no finding: wrong kind of object
  CHECK(::ibv_req_notify_cq(::ibv_cq_ex_to_cq(polled), 0) == 0);
  check_clean();
}

TEST_CASE_METHOD(machine, "a descriptor is closed twice") {
  // finding: double close
  const int fd = ::epoll_create1(0);
  ::close(fd);
  ::close(fd);
  // end
  check(finding_kind::double_close, {"close(", "of a descriptor that call ", " closed, made by"});
}

TEST_CASE_METHOD(machine, "a descriptor that belongs to an object is closed by the program") {
  CHECK(::close(channel->fd) == -1);
  check(finding_kind::double_close, {"belongs to completion channel#1 of sim0"});
}

}  // namespace ibvxx::findings_objects_test
