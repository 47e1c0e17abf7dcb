// Cases from the field: what verbs return, and what the toolkit makes of it.
#include "suite.hpp"
#include "support/every_object.hpp"
#include "support/trace.hpp"

namespace ibvxx::errors_cases {

namespace {

/// A session on a device that offers everything, with one object of each kind.
struct fixture {
  shim::session s{{{shim::device_description::hardware()}}};
  std::optional<test::every_object> objects{std::in_place};

  void end() {
    objects.reset();
    const auto findings = s.finish();
    INFO(test::lines(findings));
    CHECK(findings.empty());
  }
};

/// The verbs that a kind of rule makes sense for.
template <class Rule>
std::set<verb> accepted(shim::session& s, Rule&& rule) {
  std::set<verb> verbs;
  for (std::size_t v = 0; v < verb_count; ++v) {
    try {
      rule(s.fail(static_cast<verb>(v)));
      verbs.insert(static_cast<verb>(v));
    } catch (const std::logic_error&) {
    }
  }
  s.clear_rules();
  return verbs;
}

std::string names(const std::set<verb>& verbs) {
  std::string text;
  for (const verb v : verbs) text += std::string(" ") + name(v);
  return text;
}

}  // namespace

TEST_CASE(
    "case 22: every verb that returns the error number gives EOPNOTSUPP for 95 and for -95, "
    "whatever errno was before") {
  fixture f;
  auto left = accepted(f.s, [](const shim::fault& rule) { static_cast<void>(rule.negated()); });
  CHECK(left.size() > 50);
  for (const auto& one : test::every_call()) {
    if (left.erase(one.call) == 0) continue;
    for (const int before : {0, EINPROGRESS}) {
      for (const bool negative : {false, true}) {
        INFO(name(one.call) << " returning " << (negative ? -EOPNOTSUPP : EOPNOTSUPP) << ", errno "
                            << before);
        // verbs.h asks the older verb then.
        if (one.call == verb::query_device_ex && !negative)
          f.s.fail(verb::query_device).with(EOPNOTSUPP);
        auto rule = f.s.fail(one.call);
        (negative ? rule.negated() : rule).with(EOPNOTSUPP);
        const auto allocated = f.s.calls(verb::allocate);
        errno = before;
        const auto told = one.make(*f.objects);
        REQUIRE(told);
        // An error is made without; the group to attach to is read from a text.
        if (one.call != verb::attach_mcast) CHECK(f.s.calls(verb::allocate) == allocated);
        CHECK(told->code() == EOPNOTSUPP);
        CHECK(told->call() == one.call);
        CHECK_FALSE(told->unspecified());
        CHECK(told->message().find("EOPNOTSUPP") != std::string::npos);
      }
    }
  }
  INFO("not called:" << names(left));
  CHECK(left.empty());
  f.end();
}

TEST_CASE(
    "case 22: every verb that returns a pointer and fails without an errno is reported as "
    "unspecified, never as a success") {
  fixture f;
  auto left = accepted(f.s, [](const shim::fault& rule) { rule.without_errno(); });
  CHECK(left.size() > 25);
  for (const auto& one : test::every_call()) {
    if (left.erase(one.call) == 0) continue;
    for (const int before : {0, EINPROGRESS}) {
      INFO(name(one.call) << ", errno " << before);
      f.s.fail(one.call).without_errno();
      errno = before;
      const auto told = one.make(*f.objects);
      REQUIRE(told);
      CHECK(told->unspecified());
      CHECK(told->call() == one.call);
      CHECK(told->message().find("unspecified") != std::string::npos);
      CHECK(told->message().find("Success") == std::string::npos);
    }
  }
  INFO("not called:" << names(left));
  CHECK(left.empty());
  f.end();
}

TEST_CASE("case 22: verbs that report through errno are reported with it, whatever it was before") {
  fixture f;
  for (const auto& one : test::every_call()) {
    switch (one.call) {
      case verb::query_gid:
      case verb::query_pkey:
      case verb::get_pkey_index:
      case verb::init_ah_from_wc:
      case verb::resolve_eth_l2_from_gid:
      case verb::get_cq_event:
      case verb::get_async_event:
      case verb::rereg_mr:
      case verb::query_gid_table:
        break;
      default:
        continue;
    }
    INFO(name(one.call));
    f.s.fail(one.call).with(EOPNOTSUPP);
    errno = EINPROGRESS;
    const auto told = one.make(*f.objects);
    REQUIRE(told);
    CHECK(told->code() == EOPNOTSUPP);
    CHECK(told->call() == one.call);
  }
  f.end();
}

TEST_CASE("what explains an errno is queried after a failure, never after a success") {
  fixture f;
  for (const int fd : {f.objects->channel->fd, f.objects->context->async_fd})
    REQUIRE(set_nonblocking(fd));
  // Here parents are destroyed before their children, and iterations end that were not begun.
  f.s.tolerate(shim::finding_kind::destroyed_in_use);
  f.s.tolerate(shim::finding_kind::unbalanced_batch);
  std::size_t succeeded = 0;
  for (const auto& one : test::every_call()) {
    INFO(name(one.call));
    if (one.call == verb::attach_mcast) continue;  // the group is attached already
    const auto before = f.s.trace().size();
    if (one.make(*f.objects)) continue;
    ++succeeded;
    const auto made = f.s.trace();
    CHECK(std::none_of(made.begin() + static_cast<std::ptrdiff_t>(before), made.end(),
                       [&](const shim::call_record& made_call) {
                         const std::string called = name(made_call.call);
                         return made_call.call != one.call && called.starts_with("ibv_query");
                       }));
  }
  CHECK(succeeded > 50);
  f.end();
}

}  // namespace ibvxx::errors_cases
