// Calls that are held while the world goes on.
#include "suite.hpp"

namespace ibvxx::shim_stalls_test {

TEST_CASE("a stall at a barrier holds one call while others go on, and a port changes mid-flight") {
  shim::session s;
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    std::atomic<bool> inside{false}, go_on{false};
    s.at(verb::alloc_pd).run([&] {
      inside = true;
      while (!go_on) std::this_thread::yield();
    });
    std::thread stalled([&] { CHECK(alloc_pd(context)); });
    while (!inside) std::this_thread::yield();
    CHECK(query_port(context, 1)->state == IBV_PORT_ACTIVE);
    s.at(verb::query_port).run([&] { s.set_port_state("sim0", 1, IBV_PORT_DOWN); });
    CHECK(query_port(context, 1)->state == IBV_PORT_DOWN);
    s.at(verb::query_gid_ex).run([&] { s.set_gid("sim0", 1, 0, {}); });
    CHECK(query_gid_ex(context, 1, 0).error().code() == ENODATA);
    go_on = true;
    stalled.join();
  }
  CHECK(s.finish().empty());
}

TEST_CASE("an action runs before its call, on the calling thread, and is not seen by the session") {
  shim::session s;
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    std::thread::id where;
    std::uint64_t before = 0, after = 0;
    s.at(verb::alloc_pd).run([&] {
      where = std::this_thread::get_id();
      before = s.calls();
      CHECK(epoll_create());
      after = s.calls();
      CHECK(s.live(shim::object_kind::pd) == 0);
    });
    CHECK(alloc_pd(context));
    CHECK(where == std::this_thread::get_id());
    CHECK(after == before);
    CHECK(s.calls(verb::epoll_create1) == 0);
  }
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::shim_stalls_test
