// Sweeps themselves: bodies of every kind, reports, and single runs repeated.
#include <stdlib.h>

#include "suite.hpp"
#include "support/loopback.hpp"
#include "support/owner_recipes.hpp"
#include "support/teardown.hpp"

namespace ibvxx::sweep_test {

namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// Opens and closes a device with a CQ, as a C program would, by any convention of telling.
template <class Succeed, class Fail>
auto plain(Succeed&& succeed, Fail&& fail) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (!list) return fail(verb::get_device_list, errno);
  ibv_context* context = ::ibv_open_device(list[0]);
  const int code = errno;
  ::ibv_free_device_list(list);
  if (!context) return fail(verb::open_device, code);
  ibv_cq* cq = ::ibv_create_cq(context, 1, nullptr, nullptr, 0);
  if (!cq) {
    const int why = errno;
    ::ibv_close_device(context);
    return fail(verb::create_cq, why);
  }
  const int gone = ::ibv_destroy_cq(cq);
  // Once more; then the device is closed over it, which is what a program can do.
  if (gone != 0 && ::ibv_destroy_cq(cq) != 0) {
    ::ibv_close_device(context);
    return fail(verb::destroy_cq, gone);
  }
  ::ibv_close_device(context);
  return gone == 0 ? succeed() : fail(verb::destroy_cq, gone);
}

// A failed destroy that lasts leaves the CQ, over which the device is closed: a finding.
const shim::sweep_options once{.persistent = false};

/// Leaks the context where the CQ fails with EINVAL, and swallows the failure of the open.
result<void> leaking() {
  auto list = get_device_list();
  if (!list) return failure(list.error());
  auto context = open_device((*list)[0]);
  if (!context) return {};
  auto cq = create_cq(*context, 1);
  if (cq) return cq->reset();
  if (cq.error().code() == EINVAL) static_cast<void>(context->release());
  return failure(cq.error());
}

shim::sweep_options replaying(const char* line) {
  shim::sweep_options options;
  options.replay = line;
  return options;
}

std::string reason(const char* line) {
  try {
    static_cast<void>(shim::sweep(&leaking, replaying(line)));
  } catch (const std::logic_error& refused) {
    return refused.what();
  }
  return "not refused";
}

}  // namespace

TEST_CASE("a body may report its error by a result, an int, a bool or an exception") {
  const auto by_result = shim::sweep(
      [] {
        return plain([] { return result<void>(); },
                     [](verb v, int code) { return result<void>(failure(error(v, code))); });
      },
      once);
  INFO(by_result.text());
  CHECK(by_result.clean());
  for (const bool negative : {false, true}) {
    const auto by_int = shim::sweep(
        [negative] {
          return plain([] { return 0; }, [=](verb, int code) { return negative ? -code : code; });
        },
        once);
    INFO(by_int.text());
    CHECK(by_int.clean());
    CHECK(by_int.runs == by_result.runs);
  }
  CHECK(shim::sweep([] { return plain([] { return 0; }, [](verb, int) { return -1; }); }, once)
            .clean());
  CHECK(
      shim::sweep([] { return plain([] { return true; }, [](verb, int) { return false; }); }, once)
          .clean());
  CHECK(shim::sweep([] { plain([] {}, [](verb v, int code) { throw exception(error(v, code)); }); },
                    once)
            .clean());
  CHECK(shim::sweep(
            [] {
              plain([] {},
                    [](verb, int code) { throw std::system_error(code, std::generic_category()); });
            },
            once)
            .clean());
}

TEST_CASE("a body that reports less than an error is checked for what it reports") {
  const auto wrong_errno =
      shim::sweep([] { return plain([] { return 0; }, [](verb, int) { return EPERM; }); }, once);
  CHECK_FALSE(wrong_errno.clean());
  CHECK(wrong_errno.failures.at(0).what == "the body reported another error: EPERM");
  const auto silent = shim::sweep([] { plain([] {}, [](verb, int) {}); }, once);
  CHECK_FALSE(silent.clean());
  CHECK(silent.failures.at(0).what == "the error was not reported: the body succeeded");
  CHECK(shim::sweep([] { return true; }).clean() == false);  // it calls nothing
}

TEST_CASE("the sessions of a sweep may be strict") {
  const auto body = [](bool wrong) {
    return [wrong]() -> result<void> {
      static std::byte memory[64];
      auto context = test::open_only_device();
      if (!context) return failure(context.error());
      auto pd = alloc_pd(*context);
      if (!pd) return failure(pd.error());
      auto region = reg_mr(*pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE);
      if (!region) return failure(region.error());
      ibv_srq_init_attr wanted{nullptr, {4, 1, 0}};
      auto srq = create_srq(*pd, wanted);
      if (!srq) return failure(srq.error());
      ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory), 16, wrong ? 0 : (*region)->lkey};
      ibv_recv_wr receive{1, nullptr, &piece, 1};
      if (auto posted = post_srq_recv(*srq, &receive); !posted) return posted;
      return srq->reset();
    };
  };
  const shim::sweep_options strict{.session = {.strict = true}, .persistent = false};
  CHECK_FALSE(contains(shim::sweep(body(true), {.persistent = false}).text(), "wrong memory"));
  CHECK_FALSE(contains(shim::sweep(body(false), strict).text(), "wrong memory"));
  const auto report = shim::sweep(body(true), strict);
  REQUIRE_FALSE(report.clean());
  CHECK(report.failures.at(0).injected == "nothing");
  CHECK(contains(report.failures.at(0).what, "wrong memory: ibv_post_srq_recv (call "));
}

TEST_CASE("calls that post requests are swept where options say so, and reported like others") {
  const auto sending = [](bool minds) {
    return [minds]() -> result<void> {
      try {
        test::loopback pair;
        ibv_sge piece{reinterpret_cast<std::uint64_t>(pair.memory), 16, pair.region->lkey};
        ibv_recv_wr receive{1, nullptr, &piece, 1};
        if (auto posted = post_recv(pair.b, &receive); !posted) return posted;
        ibv_send_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        request.opcode = IBV_WR_SEND;
        if (auto posted = post_send(pair.a, &request); !posted && minds) return posted;
        return {};
      } catch (const exception& thrown) {
        return failure(thrown.cause());
      }
    };
  };
  const test::teardown_catcher teardown;
  const auto swept = [](const shim::sweep_report& report, verb call) {
    return std::count(report.calls.begin(), report.calls.end(), call);
  };
  const auto complaints = [](const shim::sweep_report& report) {
    return std::count_if(
        report.failures.begin(), report.failures.end(),
        [](const shim::sweep_failure& one) { return contains(one.injected, "ibv_post_"); });
  };
  const auto without = shim::sweep(sending(false));
  CHECK(swept(without, verb::post_send) == 0);
  CHECK(complaints(without) == 0);
  const auto with = shim::sweep(sending(true), {.posts = true});
  CHECK(swept(with, verb::post_send) == 1);
  CHECK(swept(with, verb::post_recv) == 1);
  CHECK(complaints(with) == 0);
  CHECK(with.runs > without.runs);
  const auto careless = shim::sweep(sending(false), {.posts = true});
  CHECK(complaints(careless) == 6);  // three errnos, once and persistently
  CHECK(contains(careless.text(), "the error was not reported"));
}

TEST_CASE("a report names each failing run by a line that repeats it, and it alone") {
  const auto report = shim::sweep(&leaking);
  INFO(report.text());
  REQUIRE_FALSE(report.clean());
  CHECK(contains(report.text(), "again: IBVXX_REPLAY=\"ibv_create_cq@1=EINVAL,once\""));
  std::set<std::string> lines;
  for (const auto& failure : report.failures) lines.insert(failure.replay);
  CHECK(lines.count("ibv_open_device@1=ENOMEM,once") == 1);
  CHECK(lines.count("ibv_open_device@1=ENOMEM,always") == 1);
  for (const std::string& line : lines) {
    INFO(line);
    const auto again = shim::sweep(&leaking, replaying(line.c_str()));
    CHECK(again.replayed);
    CHECK(again.runs == 1);
    CHECK_FALSE(again.clean());
    std::vector<std::string> whats, before;
    for (const auto& failure : again.failures) {
      CHECK(failure.replay == line);
      whats.push_back(failure.what);
    }
    for (const auto& failure : report.failures)
      if (failure.replay == line) before.push_back(failure.what);
    CHECK(whats == before);
    CHECK(contains(again.text(), "1 run, replayed"));
  }
  const auto good = shim::sweep(&leaking, replaying("ibv_create_cq@1=ENOMEM,once"));
  CHECK(good.clean());
  CHECK(good.runs == 1);
}

TEST_CASE("second-order runs are replayed, too, also by the environment") {
  const auto body = [] {
    return plain([] { return result<void>(); },
                 [](verb v, int code) { return result<void>(failure(error(v, code))); });
  };
  const auto report = shim::sweep(body, {.order = 2, .persistent = false});
  INFO(report.text());
  REQUIRE_FALSE(report.clean());  // two failed destroys: the device is closed over the CQ
  CHECK(report.failures.at(0).replay == "ibv_destroy_cq@1=EBUSY,once;ibv_destroy_cq@2=EBUSY,once");
  ::setenv("IBVXX_REPLAY", report.failures[0].replay.c_str(), 1);
  const auto again = shim::sweep(body);
  ::unsetenv("IBVXX_REPLAY");
  CHECK(again.replayed);
  REQUIRE_FALSE(again.clean());
  CHECK(again.failures.at(0).what == report.failures.at(0).what);
}

TEST_CASE("a replay line for a call that the body does not make is reported") {
  const auto report = shim::sweep(&leaking, replaying("ibv_create_cq@2=ENOMEM,once"));
  REQUIRE_FALSE(report.clean());
  CHECK(contains(report.failures.at(0).what, "never fired"));
}

TEST_CASE("malformed replay lines are refused with the reason") {
  CHECK(contains(reason("nonsense"), "\"nonsense\" lacks a part"));
  CHECK(contains(reason("ibv_create_pq@1=ENOMEM,once"), "names no verb"));
  CHECK(contains(reason("ibv_free_device_list@1=ENOMEM,once"), "names no verb that a sweep fails"));
  CHECK(contains(reason("ibv_create_cq@0=ENOMEM,once"), "count from 1"));
  CHECK(contains(reason("ibv_create_cq@1/t0=ENOMEM,once"), "number of a thread"));
  CHECK(contains(reason("ibv_create_cq@1x=ENOMEM,once"), "count from 1"));
  CHECK(contains(reason("ibv_create_cq@1=ENONSENSE,once"), "names no errno"));
  CHECK(contains(reason("ibv_create_cq@1=5000,once"), "names no errno"));
  CHECK(contains(reason("ibv_create_cq@1=ENOMEM,twice"), "neither once nor always"));
  CHECK(contains(reason("ibv_create_cq@1=12,once;"), "not refused"));
}

TEST_CASE("the report for programs: one object a line, and the same every time") {
  const auto report = shim::sweep(&leaking);
  const std::string lines = report.json_lines();
  CHECK(lines == shim::sweep(&leaking).json_lines());
  CHECK(report.text() == shim::sweep(&leaking).text());
  std::vector<std::string> each;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    each.push_back(lines.substr(begin, end - begin));
    begin = end + 1;
  }
  REQUIRE(each.size() == 1 + 6 + report.failures.size());
  CHECK(each[0] == "{\"type\":\"summary\",\"runs\":" + std::to_string(report.runs) +
                       ",\"calls\":6,\"failures\":" + std::to_string(report.failures.size()) +
                       ",\"clean\":false,\"replayed\":false,\"stopped\":\"\"}");
  CHECK(each[1] ==
        "{\"type\":\"verb\",\"verb\":\"ibv_get_device_list\",\"calls\":1,"
        "\"errnos\":[\"ENOSYS\",\"ENOMEM\"]}");
  CHECK(each[7].find("{\"type\":\"failure\",\"kind\":\"not "
                     "reported\",\"injected\":\"ibv_open_device@1 -> ENOMEM, "
                     "once\",\"what\":\"the error was not reported: the body succeeded\","
                     "\"replay\":\"ibv_open_device@1=ENOMEM,once\"}") == 0);
}

TEST_CASE("text in the report for programs is escaped") {
  shim::sweep_report report;
  report.failures.push_back({"a \"quoted\" \\ thing", "two\nlines", "x"});
  CHECK(contains(report.json_lines(), "\"a \\\"quoted\\\" \\\\ thing\""));
  CHECK(contains(report.json_lines(), "\"two\\u000alines\""));
}

TEST_CASE("a sweep inside a session is refused, and the teardown handler stays as it was") {
  const test::teardown_catcher teardown;
  const teardown_handler before = set_teardown_handler(nullptr);
  set_teardown_handler(before);
  shim::session s;
  CHECK_THROWS_AS(shim::sweep(&leaking), std::logic_error);
  const teardown_handler after = set_teardown_handler(nullptr);
  set_teardown_handler(after);
  CHECK(after == before);
  CHECK(s.finish().empty());
}

TEST_CASE("a session that cannot begin leaves the teardown handler as it was") {
  const test::teardown_catcher teardown;
  const teardown_handler before = set_teardown_handler(nullptr);
  set_teardown_handler(before);
  shim::sweep_options wrong;
  wrong.machine.devices = {{.name = "same"}, {.name = "same"}};
  CHECK_THROWS(shim::sweep(&leaking, wrong));
  const teardown_handler after = set_teardown_handler(nullptr);
  set_teardown_handler(after);
  CHECK(after == before);
}

TEST_CASE("an exception that names no verb is a failure of its run, and the sweep continues") {
  const auto body = [](bool leak) {
    return [leak] {
      auto list = get_device_list();
      if (!list) throw exception(list.error());
      auto context = open_device((*list)[0]);
      if (!context) throw exception(context.error());
      auto pd = alloc_pd(*context);
      if (!pd && leak) static_cast<void>(context->release());
      if (!pd) throw std::runtime_error("no domain");
      if (auto gone = pd->reset(); !gone) throw exception(gone.error());
    };
  };
  const auto report = shim::sweep(body(true), {.persistent = false});
  INFO(report.text());
  const auto count = [&report](shim::sweep_failure_kind kind) {
    return std::count_if(report.failures.begin(), report.failures.end(),
                         [kind](const auto& one) { return one.kind == kind; });
  };
  CHECK(count(shim::sweep_failure_kind::foreign_exception) == 1);
  CHECK(count(shim::sweep_failure_kind::left_alive) == 1);
  CHECK(report.failures.size() == 2);
  CHECK(contains(report.text(), "it threw std::runtime_error: no domain"));
  CHECK(contains(report.text(), "IBVXX_REPLAY=\"ibv_alloc_pd@"));
  CHECK(std::count_if(report.calls.begin(), report.calls.end(),
                      [](const shim::swept_call& call) { return call == verb::dealloc_pd; }) == 1);
  const auto number = shim::sweep([] { throw 5; });
  CHECK(contains(number.text(), "stopped: the undisturbed run is not clean"));
  CHECK(contains(number.text(), "it threw int"));
}

TEST_CASE("a call that is not repeated is reported as that alone") {
  int runs = 0;
  const auto report = shim::sweep(
      [&runs]() -> result<void> {
        if (++runs > 1) return {};
        auto list = get_device_list();
        return list ? result<void>() : failure(list.error());
      },
      {.persistent = false});
  REQUIRE(report.failures.size() >= 2);
  for (const auto& failure : report.failures)
    CHECK(failure.kind == shim::sweep_failure_kind::never_fired);
}

TEST_CASE("only, except and optional_calls choose what is failed, and what must be reported") {
  shim::sweep_options options;
  options.only = {verb::create_cq};
  const auto cq_alone = shim::sweep(&leaking, options);
  CHECK(cq_alone.runs == 1 + 2 * 3);
  for (const auto& failure : cq_alone.failures) CHECK(contains(failure.injected, "ibv_create_cq"));
  options.only = {};
  options.persistent = false;
  options.except = {verb::create_cq};
  options.optional_calls = {verb::open_device};
  CHECK(shim::sweep(&leaking, options).clean());
  options.optional_calls = {};
  CHECK_FALSE(shim::sweep(&leaking, options).clean());
  options.only = {verb::create_cq};
  CHECK_THROWS_AS(shim::sweep(&leaking, options), std::logic_error);
  options.except = {};
  options.only = {verb::free_device_list};
  CHECK_THROWS_AS(shim::sweep(&leaking, options), std::logic_error);
  options.only = {verb::post_send};
  CHECK_THROWS_AS(shim::sweep(&leaking, options), std::logic_error);
  options.posts = true;
  const auto nothing = shim::sweep(&leaking, options);
  CHECK_FALSE(nothing.clean());
  CHECK(contains(nothing.text(), "stopped: the body makes no call that the sweep could fail"));
  options.only = {};
  for (std::size_t v = 0; v < verb_count; ++v) options.except.push_back(static_cast<verb>(v));
  CHECK_THROWS_AS(shim::sweep(&leaking, options), std::logic_error);
}

TEST_CASE("two threads of a body may lose objects at a time") {
  const auto body = []() -> result<void> {
    auto list = get_device_list();
    if (!list) return failure(list.error());
    auto context = open_device((*list)[0]);
    if (!context) return failure(context.error());
    const auto lose = [&context] { auto pd = alloc_pd(*context); };
    std::thread a(lose), b(lose);
    a.join();
    b.join();
    return context->reset();
  };
  shim::sweep_options options;
  options.only = {verb::dealloc_pd};
  options.transient = false;
  const auto report = shim::sweep(body, options);
  INFO(report.text());
  CHECK(report.runs > 1);
}

TEST_CASE("calls are numbered by verb and thread: a thread that polls shifts nothing") {
  const auto body = []() -> result<void> {
    auto list = get_device_list();
    if (!list) return failure(list.error());
    auto context = open_device((*list)[0]);
    if (!context) return failure(context.error());
    auto cq = create_cq(*context, 1);
    if (!cq) return failure(cq.error());
    std::atomic<bool> stop{false};
    std::thread poller([&] {
      ibv_wc done;
      while (!stop) static_cast<void>(::ibv_poll_cq(cq->get(), 1, &done));
    });
    result<void> outcome;
    std::thread worker([&] {
      auto first = alloc_pd(*context);
      if (!first) outcome = failure(first.error());
      if (!outcome) return;
      auto second = alloc_pd(*context);
      if (!second) outcome = failure(second.error());
      if (!outcome) return;
      if (auto gone = second->reset(); !gone) outcome = gone;
      if (auto gone = first->reset(); !gone && outcome) outcome = gone;
    });
    worker.join();
    stop = true;
    poller.join();
    if (outcome) {
      auto third = alloc_pd(*context);
      outcome = third ? third->reset() : failure(third.error());
    }
    if (auto gone = cq->reset(); !gone && outcome) outcome = gone;
    return outcome;
  };
  shim::sweep_options options;
  options.persistent = false;
  options.except = {verb::allocate};
  options.only = {verb::alloc_pd};
  const auto report = shim::sweep(body, options);
  INFO(report.text());
  CHECK(report.clean());
  CHECK(report.runs == 1 + 3);
  std::vector<shim::swept_call> domains;
  for (const auto& one : report.calls)
    if (one == verb::alloc_pd) domains.push_back(one);
  REQUIRE(domains.size() == 3);
  CHECK((domains[0].number == 1 && domains[0].thread == 2));
  CHECK((domains[1].number == 2 && domains[1].thread == 2));
  CHECK((domains[2].number == 1 && domains[2].thread == 1));
  const auto again = shim::sweep(body, replaying("ibv_alloc_pd@2/t2=ENOMEM,once"));
  CHECK(again.clean());
}

TEST_CASE("a failure is that of one thread's call, and a persistent one goes on in every thread") {
  std::string failed;
  const auto body = [&failed]() -> result<void> {
    failed.clear();
    auto context = open_device((*get_device_list())[0]);
    if (!context) return failure(context.error());
    result<void> outcome;
    const auto allocate = [&](const char* thread) {
      auto pd = alloc_pd(*context);
      if (pd) return;
      failed += thread;
      outcome = failure(pd.error());
    };
    allocate("1");
    std::thread other([&] {
      allocate("2");
      allocate("2");
    });
    other.join();
    allocate("1");
    return outcome;
  };
  CHECK(shim::sweep(body, replaying("ibv_alloc_pd@1/t2=ENOMEM,once")).clean());
  CHECK(failed == "2");
  CHECK(shim::sweep(body, replaying("ibv_alloc_pd@1=ENOMEM,once")).clean());
  CHECK(failed == "1");
  CHECK(shim::sweep(body, replaying("ibv_alloc_pd@2/t2=ENOMEM,always")).clean());
  CHECK(failed == "21");
}

}  // namespace ibvxx::sweep_test
