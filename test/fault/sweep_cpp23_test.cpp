// Bodies compiled for C++23, whatever the shim is compiled for.
#include "suite.hpp"

namespace ibvxx::sweep_cpp23_test {

TEST_CASE("an exception thrown by code of another C++ is compared by its verb") {
  const auto throwing = [](bool right) {
    return [right] {
      const auto list = get_device_list();
      if (list) return;
      throw exception(right ? list.error() : error(verb::create_cq, list.error().code()));
    };
  };
  CHECK(shim::sweep(throwing(true)).clean());
  const auto wrong = shim::sweep(throwing(false));
  INFO(wrong.text());
  REQUIRE(wrong.failures.size() == 4);  // two errnos, once and persistently
  for (const auto& failure : wrong.failures) {
    CHECK(failure.kind == shim::sweep_failure_kind::other_error);
    CHECK(failure.what.find("ibv_create_cq") != std::string::npos);
  }
}

}  // namespace ibvxx::sweep_cpp23_test
