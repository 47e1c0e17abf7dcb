// Rules that never fire, findings that are expected or tolerated, and call stacks.
#include "machine.hpp"

namespace ibvxx::findings_rules_test {

using test::finding_kind;
using test::machine;

TEST_CASE_METHOD(machine, "a rule that never fires") {
  // finding: unfired rule
  s.fail(verb::create_srq).with(ENOMEM);
  // end
  check(finding_kind::unfired_rule,
        {"ibv_create_srq, matching call 1 -> ENOMEM, once never fired"});
}

TEST_CASE_METHOD(machine,
                 "rules that never fire are different findings where only a number differs") {
  s.fail(verb::create_srq).nth(2).with(ENOMEM);
  s.fail(verb::create_srq).nth(3).with(ENOMEM);
  const auto findings = finish();
  INFO(test::lines(findings));
  CHECK(findings.size() == 2);
}

TEST_CASE_METHOD(machine, "a rule that fires, and one that is cleared") {
  // no finding: unfired rule
  s.fail(verb::alloc_pd).with(ENOMEM);
  CHECK(::ibv_alloc_pd(context) == nullptr);
  s.fail(verb::alloc_pd).with(ENOMEM);
  s.expect(finding_kind::leak);
  s.clear_rules();
  check_clean();
}

TEST_CASE_METHOD(machine, "an expected finding is not reported, once; its absence is") {
  s.expect(finding_kind::foreign_pointer, "as PD");
  s.expect(finding_kind::wrong_kind);
  s.expect(finding_kind::leak, "no such text");
  ibv_pd forged{};
  for (int i = 0; i < 2; ++i) CHECK(::ibv_dealloc_pd(&forged) == EINVAL);
  CHECK(::ibv_dealloc_pd(reinterpret_cast<ibv_pd*>(context)) == EINVAL);
  const auto findings = finish();
  INFO(test::lines(findings));
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].kind == finding_kind::foreign_pointer);
  CHECK(findings[1].kind == finding_kind::unfired_rule);
  CHECK(findings[1].text.find("a finding of the kind \"leak\", containing \"no such text\", was "
                              "expected and did not occur") == 0);
}

TEST_CASE_METHOD(machine, "a tolerated kind is not reported, however often") {
  s.tolerate(finding_kind::foreign_pointer);
  ibv_pd forged{};
  for (int i = 0; i < 3; ++i) CHECK(::ibv_dealloc_pd(&forged) == EINVAL);
  check_clean();
}

TEST_CASE("call stacks show where an object was made, destroyed and misused, if enabled") {
  for (const bool asked : {false, true}) {
    machine m({.call_stacks = asked});
    ibv_pd* other = ::ibv_alloc_pd(m.context);
    CHECK(::ibv_dealloc_pd(other) == 0);
    CHECK(::ibv_dealloc_pd(other) == EINVAL);
    const auto findings = m.finish();
    REQUIRE(findings.size() == 1);
    const std::string& text = findings[0].text;
    INFO(text);
    for (const char* part : {"\n    PD#2 of sim0 was made at\n",
                             "\n    PD#2 of sim0 was destroyed at\n", "\n    found at\n", "+0x"})
      CHECK((text.find(part) != std::string::npos) == asked);
    if (!asked) CHECK(text.find('\n') == std::string::npos);
  }
}

TEST_CASE("every kind of finding has its own name and advice") {
  std::set<std::string> names, advice;
  for (std::size_t i = 0; i < shim::finding_kind_count; ++i) {
    names.insert(name(static_cast<finding_kind>(i)));
    advice.insert(shim::advice(static_cast<finding_kind>(i)));
  }
  CHECK(names.size() == shim::finding_kind_count);
  CHECK(advice.size() == shim::finding_kind_count);
  CHECK(names.count("?") == 0);
}

TEST_CASE("a deadline that has passed before it begins is refused") {
  std::string reason;
  try {
    shim::session s({}, {.destroy_deadline = std::chrono::milliseconds(-1)});
  } catch (const std::logic_error& refused) {
    reason = refused.what();
  }
  CHECK(reason.find("below 0") != std::string::npos);
}

}  // namespace ibvxx::findings_rules_test
