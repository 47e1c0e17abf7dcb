// Calls that are stalled while other threads and devices change things.
#include "suite.hpp"

namespace ibvxx::shim_stalls_test {

TEST_CASE("a barrier stalls one call while others run, and a port changes during a call") {
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

TEST_CASE("an action runs before its call, on the calling thread, and its calls are not counted") {
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

TEST_CASE(
    "a verb that an action calls is carried out, and no rule applies to it, not even the action's "
    "own") {
  shim::session s;
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    unique_pd own;
    s.at(verb::alloc_pd).persistently().run([&] {
      if (!own) own = or_throw(alloc_pd(context));
    });
    s.fail(verb::create_cq).with(ENOMEM);
    s.at(verb::query_port).run([&] { CHECK(create_cq(context, 16)); });
    auto pd = or_throw(alloc_pd(context));
    CHECK(own->handle != pd->handle);
    CHECK(s.calls(verb::alloc_pd) == 1);
    CHECK(s.live(shim::object_kind::pd) == 2);
    CHECK(query_port(context, 1));
    CHECK(create_cq(context, 16).error().code() == ENOMEM);
    const auto trace = s.trace();
    CHECK(std::count_if(trace.begin(), trace.end(), [](const shim::call_record& one) {
            return one.call == verb::alloc_pd || one.call == verb::create_cq;
          }) == 2);
  }
  CHECK(s.finish().empty());
}

TEST_CASE("misuse by an action is a finding") {
  shim::session s;
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    s.at(verb::query_port).run([&] { static_cast<void>(or_throw(alloc_pd(context)).release()); });
    CHECK(query_port(context, 1));
    s.expect(shim::finding_kind::destroyed_in_use);
  }
  const auto findings = s.finish();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == shim::finding_kind::leak);
}

}  // namespace ibvxx::shim_stalls_test
