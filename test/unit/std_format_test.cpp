// std::format of ibvxx's types. Built where the standard library has it.
#include <cerrno>
#include <format>
#include <ibvxx/gid.hpp>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/std_format.hpp>
#include <string>

#include "catch.hpp"

namespace ibvxx::std_format_test {

TEST_CASE("std::format knows verbs, states and GIDs, with width and alignment", "[format]") {
  CHECK(std::format("{}", verb::create_cq) == "ibv_create_cq");
  CHECK(std::format("[{:>10}]", context_state::paused) == "[    paused]");
  CHECK(std::format("{}", shim::gid("fe80::1")) == "fe80::1");
  CHECK(std::format("{}", shim::gid("::ffff:10.0.0.1")) == "::ffff:10.0.0.1");
}

TEST_CASE("std::format of an error is its message, however long", "[format]") {
  error e(verb::create_cq, EINVAL);
  e.on("mlx5_0").explain("cqe %d is above the device's limit of %d", 70000, 65535);
  CHECK(std::format("{}", e) == e.message());
  e.explain("%s", std::string(200, 'x').c_str());
  CHECK(std::format("{}", e) == e.message());
}

}  // namespace ibvxx::std_format_test
