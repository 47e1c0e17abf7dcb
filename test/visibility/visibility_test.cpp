// What there is once in a process, although its shared objects hide their symbols.
#include <ibvxx/or_throw.hpp>

#include "catch.hpp"
#include "part.hpp"
#include "support/teardown.hpp"

namespace ibvxx::visibility_test {

TEST_CASE("a shared object that hides its symbols has the same teardown handler") {
  const test::teardown_catcher teardown;
  part_cannot_destroy();
  REQUIRE(teardown.count() == 1);
  CHECK(teardown[0].code() == EBUSY);
}

TEST_CASE("an exception from a shared object that hides its symbols is caught by its type") {
  CHECK_THROWS_AS(part_throws(), exception);
}

}  // namespace ibvxx::visibility_test
