// Every owner type of the toolkit, by the same tests.
#include "suite.hpp"
#include "support/owner_recipes.hpp"
#include "support/teardown.hpp"
#include "support/trace.hpp"

namespace ibvxx::owner_test {

namespace {

/// A session on a device that offers everything, and what an object of the type needs around it.
template <class Recipe>
struct stage {
  shim::session s{test::full_machine()};
  std::optional<typename Recipe::around> around{std::in_place};
  std::size_t empty = 0;  // objects of the kind before any was made by the test

  stage() {
    REQUIRE(around->prepare());
    empty = live();
  }
  [[nodiscard]] typename Recipe::owner make() {
    auto made = Recipe::make(*around);
    REQUIRE(made);
    return std::move(*made);
  }
  [[nodiscard]] std::size_t live() const { return s.live(Recipe::kind); }
  [[nodiscard]] std::vector<shim::finding> finish() {
    around.reset();
    return s.finish();
  }
};

/// Which object an owner has, for comparing.
template <class Owner>
auto identity(const Owner& owner) {
  if constexpr (requires { owner.get(); })
    return owner.get();
  else
    return owner.begin();
}

template <class Owner>
bool owns(const Owner& owner) {
  if constexpr (requires { static_cast<bool>(owner); })
    return static_cast<bool>(owner);
  else
    return owner.begin() != nullptr;
}

/// reset(), or the assignment of an empty owner where there is none.
template <class Owner>
result<void> reset(Owner& owner) {
  if constexpr (requires { owner.reset(); }) {
    return owner.reset();
  } else {
    owner = Owner();
    return {};
  }
}

/// A second owner of the same object, which only a test may make.
template <class Owner>
Owner second_owner(const Owner& owner) {
  if constexpr (std::is_same_v<Owner, multicast_membership>)
    return Owner(owner.get(), owner.gid(), owner.lid());
  else
    return Owner(owner.get());
}

}  // namespace

TEMPLATE_LIST_TEST_CASE(
    "an owner is the size of its handle; only a list also has its length, and a membership its "
    "group",
    "[owner]", test::every_owner) {
  using owner = typename TestType::owner;
  if constexpr (std::is_same_v<owner, device_list>)
    CHECK(sizeof(owner) == sizeof(ibv_device**) + sizeof(std::size_t));
  else if constexpr (std::is_same_v<owner, multicast_membership>)
    CHECK(sizeof(owner) > sizeof(ibv_qp*) + sizeof(ibv_gid));
  else
    CHECK(sizeof(owner) == sizeof(typename owner::pointer));
}

TEMPLATE_LIST_TEST_CASE("an owner moves and swaps without a call, and resets once", "[owner]",
                        test::every_owner) {
  stage<TestType> on;
  {
    auto a = on.make();
    CHECK(owns(a));
    CHECK(on.live() == on.empty + 1);
    const auto object = identity(a);
    const auto calls = on.s.calls();

    auto b = std::move(a);
    CHECK_FALSE(owns(a));
    CHECK(identity(b) == object);
    auto& self = b;
    b = std::move(self);
    CHECK(identity(b) == object);
    typename TestType::owner c;
    CHECK_FALSE(owns(c));
    std::swap(b, c);
    CHECK(identity(c) == object);
    CHECK_FALSE(owns(b));
    if constexpr (requires { c.release(); }) {
      auto adopted = second_owner(c);
      static_cast<void>(c.release());
      CHECK_FALSE(owns(c));
      CHECK(identity(adopted) == object);
      std::swap(adopted, c);
    }
    CHECK(on.s.calls() == calls);

    CHECK(reset(c));
    CHECK_FALSE(owns(c));
    CHECK(on.s.calls() == calls + 1);
    CHECK(on.s.trace().back().call == TestType::end);
    CHECK(on.live() == on.empty);
    CHECK(reset(c));
    CHECK(on.s.calls() == calls + 1);
  }
  CHECK(on.finish().empty());
}

// Case 7.
TEMPLATE_LIST_TEST_CASE(
    "assigning over a live owner destroys the old once, before the new is taken", "[owner]",
    test::every_owner) {
  stage<TestType> on;
  {
    auto a = on.make();
    auto b = on.make();
    const auto old_one = identity(a);
    const auto new_one = identity(b);
    bool seen = false;
    on.s.at(TestType::end).run([&] {
      seen = true;
      CHECK(identity(a) == old_one);
      CHECK(identity(b) == new_one);
    });
    const auto before = on.s.trace().size();

    a = std::move(b);

    CHECK(seen);
    CHECK(identity(a) == new_one);
    CHECK_FALSE(owns(b));
    const auto trace = on.s.trace();
    REQUIRE(trace.size() == before + 1);
    CHECK(trace.back().call == TestType::end);
    CHECK(on.live() == on.empty + 1);
  }
  CHECK(on.live() == on.empty);
  const auto findings = on.finish();
  INFO(test::lines(findings));
  CHECK(findings.empty());
}

TEMPLATE_LIST_TEST_CASE("a destroy that fails in reset() keeps the object, and can be repeated",
                        "[owner]", test::every_owner) {
  if constexpr (TestType::may_fail) {
    stage<TestType> on;
    {
      auto a = on.make();
      const auto object = identity(a);
      on.s.fail(TestType::end).times(2).with(EBUSY);
      for (int attempt = 0; attempt < 2; ++attempt) {
        const auto outcome = a.reset();
        REQUIRE_FALSE(outcome);
        CHECK(outcome.error().call() == TestType::end);
        CHECK(outcome.error().code() == EBUSY);
        CHECK(identity(a) == object);
        CHECK(on.live() == on.empty + 1);
      }
      CHECK(a.reset());
      CHECK(on.live() == on.empty);
    }
    CHECK(on.finish().empty());
  }
}

TEMPLATE_LIST_TEST_CASE(
    "a destroy that fails in a destructor is reported to the teardown handler, and errno is kept",
    "[owner]", test::every_owner) {
  if constexpr (TestType::may_fail || TestType::gone_after_failure) {
    stage<TestType> on;
    const test::teardown_catcher teardown;
    on.s.fail(TestType::end).with(EIO);
    auto kept = on.make();
    {
      const auto second = second_owner(kept);
      errno = ENOTTY;
    }
    CHECK(errno == ENOTTY);
    REQUIRE(teardown.count() == 1);
    CHECK(teardown[0].call() == TestType::end);
    CHECK(teardown[0].code() == EIO);
    if constexpr (TestType::gone_after_failure) {
      CHECK(on.live() == on.empty);
      static_cast<void>(kept.release());
    } else {
      CHECK(on.live() == on.empty + 1);
      CHECK(kept.reset());
    }
    CHECK(on.finish().empty());
  }
}

TEMPLATE_LIST_TEST_CASE("making and destroying an object is clean whichever call fails, at order 2",
                        "[owner]", test::every_owner) {
  const auto body = []() -> result<void> {
    typename TestType::around around;
    typename TestType::owner owner;
    auto made = around.prepare();
    if (made) made = test::assign(owner, TestType::make(around));
    auto gone = reset(owner);
    const bool stays = !gone && !TestType::gone_after_failure;
    if constexpr (requires { owner.release(); })
      if (stays) static_cast<void>(owner.release());
    const auto dismantled = test::dismantle(around.owners(), stays);
    if (gone) gone = dismantled;
    return made ? gone : made;
  };
  const auto report = shim::sweep(body, {.order = 2, .machine = test::full_machine()});
  INFO(report.text());
  CHECK(report.clean());
  CHECK(std::count(report.calls.begin(), report.calls.end(), TestType::end) != 0);
}

}  // namespace ibvxx::owner_test
