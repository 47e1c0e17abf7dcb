// What an error holds and how it reads.
#include "suite.hpp"

namespace ibvxx::error_test {

TEST_CASE("an error is small, trivially copyable, and reads as one line") {
  STATIC_REQUIRE(sizeof(error) == 128);
  STATIC_REQUIRE(std::is_trivially_copyable_v<error>);
  error e(verb::create_cq, EINVAL);
  e.on("mlx5_0").explain("cqe %d is above the device's limit of %d", 70000, 65535);
  CHECK(e.call() == verb::create_cq);
  CHECK(e.code() == EINVAL);
  CHECK(e.device() == "mlx5_0");
  CHECK(e.detail() == "cqe 70000 is above the device's limit of 65535");
  CHECK(e.message() ==
        "ibv_create_cq on mlx5_0: Invalid argument (EINVAL): cqe 70000 is above the device's limit "
        "of 65535");
}

TEST_CASE("a negative errno, as some providers return it, is made positive") {
  CHECK(error(verb::query_port, -EOPNOTSUPP).code() == EOPNOTSUPP);
  CHECK(error(verb::query_port, EOPNOTSUPP) == error(verb::query_port, -EOPNOTSUPP));
}

TEST_CASE("a failure without an errno is unspecified, never a success") {
  const error e(verb::alloc_pd, 0);
  CHECK(e.unspecified());
  CHECK(e.code() == EIO);
  CHECK(e.message() == "ibv_alloc_pd: unspecified error (the call failed and left errno at 0)");
  CHECK_FALSE(error(verb::alloc_pd, EIO) == e);
}

TEST_CASE("an errno without a name is shown as its number") {
  CHECK(error(verb::open_device, 4000).message() == "ibv_open_device: Unknown error (errno 4000)");
}

TEST_CASE("details add up, and what does not fit is cut visibly") {
  error e(verb::reg_mr, ENOMEM);
  e.on("rxe0").explain("first").explain(", second %d", 2);
  CHECK(e.detail() == "first, second 2");
  for (int i = 0; i < 40; ++i) e.explain(" and more");
  CHECK(e.detail().size() == 121 - 1 - 4 - 1);
  CHECK(e.detail().substr(e.detail().size() - 3) == "...");
  CHECK(e.device() == "rxe0");
}

TEST_CASE("a device name longer than the kernel's usual ones leaves room for the detail") {
  error e(verb::reg_mr, ENOMEM);
  e.on(std::string(63, 'd').c_str()).explain("why");
  CHECK(e.device() == std::string(32, 'd'));
  CHECK(e.detail() == "why");
}

TEST_CASE("message_to cuts at the buffer's end and allocates nothing") {
  error e(verb::create_cq, EINVAL);
  e.on("sim0");
  char small[8];
  CHECK(e.message_to(small, sizeof small) == 7);
  CHECK(std::string(small) == "ibv_cre");
  CHECK(e.message_to(small, 0) == 0);
  shim::session s;
  char line[error::max_message];
  const auto before = s.calls(verb::allocate);
  e.message_to(line, sizeof line);
  CHECK(s.calls(verb::allocate) == before);
  CHECK(s.finish().empty());
}

TEST_CASE("the longest message fits max_message") {
  error e(verb::attach_counters_point_flow, EADDRNOTAVAIL);
  e.on(std::string(63, 'd').c_str());
  for (int i = 0; i < 40; ++i) e.explain("xxxxxxxxxx");
  CHECK(e.message().size() < error::max_message - 1);
  CHECK(e.message().substr(e.message().size() - 3) == "...");
}

TEST_CASE("every verb has its C name") {
  CHECK(std::string(name(verb::query_gid_table)) == "ibv_query_gid_table");
  CHECK(std::string(name(verb::epoll_create1)) == "epoll_create1");
  CHECK(std::string(name(static_cast<verb>(verb_count))) == "?");
  std::set<std::string> names;
  for (std::size_t i = 0; i < verb_count; ++i) names.insert(name(static_cast<verb>(i)));
  CHECK(names.size() == verb_count);
}

TEST_CASE("errors, verbs, states and GIDs can be formatted with fmt") {
  CHECK(fmt::format("{}", error(verb::alloc_pd, ENOMEM)) ==
        error(verb::alloc_pd, ENOMEM).message());
  CHECK(fmt::format("{:>12}", verb::close) == "       close");
  CHECK(fmt::format("{}", context_state::paused) == "paused");
  CHECK(fmt::to_string(context_state::paused) == "paused");
  CHECK(fmt::format("{}", shim::gid("::ffff:10.0.0.1")) == "::ffff:10.0.0.1");
}

TEST_CASE("or_throw returns the value, or throws a system_error that has the verb") {
  CHECK(or_throw(result<int>(7)) == 7);
  CHECK_NOTHROW(or_throw(result<void>()));
  try {
    or_throw(result<int>(failure(error(verb::alloc_pd, ENOMEM))));
    FAIL("did not throw");
  } catch (const std::system_error& thrown) {
    CHECK(thrown.code() == std::errc::not_enough_memory);
    CHECK(std::string(thrown.what()).find("ibv_alloc_pd: Cannot allocate memory (ENOMEM)") == 0);
    REQUIRE(dynamic_cast<const ibvxx::exception*>(&thrown));
    CHECK(dynamic_cast<const ibvxx::exception&>(thrown).cause().call() == verb::alloc_pd);
  }
}

}  // namespace ibvxx::error_test
