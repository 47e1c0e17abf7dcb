// Cases from the field: ports, completion vectors and queue sizes.
#include "suite.hpp"

namespace ibvxx::limits_cases {

TEST_CASE(
    "case 26: port 1 down and port 2 active: 2 is chosen; asked for 1, the error names the port "
    "and its "
    "state") {
  shim::session s({{{.name = "mlx5_0", .ports = {{.state = IBV_PORT_DOWN}, {}}}}});
  auto context = rdma_context::open({.device_name = "mlx5_0"});
  REQUIRE(context);
  CHECK(context->port() == 2);
  CHECK(context->gid().entry.port_num == 2);
  CHECK(context->reset());
  rdma_context asked({.device_name = "mlx5_0", .port = 1});
  const auto enabled = asked.enable();
  REQUIRE_FALSE(enabled);
  CHECK(enabled.error().message() ==
        "ibv_query_port on mlx5_0: Network is down (ENETDOWN): port 1 is DOWN (1), not ACTIVE");
  CHECK(s.finish().empty());
}

TEST_CASE("case 27: three completion vectors, eight CQs: the vectors are used in turn") {
  shim::session s(shim::simulated{{{.completion_vectors = 3}}});
  auto context = or_throw(rdma_context::open({.comp_channels = 1, .cqs = 8}));
  CHECK(context.cq_count() == 8);
  std::vector<int> vectors;
  for (std::size_t i = 0; i < context.cq_count(); ++i)
    vectors.push_back(s.completion_vector(context.cq(i)));
  CHECK(vectors == std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1});
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE("case 27: an explicit completion vector out of range is refused with the range") {
  shim::session s(shim::simulated{{{.completion_vectors = 3}}});
  auto context = or_throw(open_device((*get_device_list())[0]));
  for (const int vector : {-1, 3}) {
    const auto cq = create_cq(context, 16, nullptr, vector);
    REQUIRE_FALSE(cq);
    CHECK(cq.error().code() == EINVAL);
    CHECK(cq.error().detail() == "comp_vector " + std::to_string(vector) + " is outside 0..2");
  }
  for (const int vector : {0, 1, 2}) CHECK(create_cq(context, 16, nullptr, vector));
  CHECK(context.reset());
  CHECK(s.finish().empty());
}

TEST_CASE(
    "case 28: a queue of the device's limit is created, and one entry more is refused with both "
    "numbers") {
  shim::session s;
  rdma_context largest({.cqe = 32767});
  REQUIRE(largest.enable());
  CHECK(largest.cq(0)->cqe == 32767);
  CHECK(largest.reset());
  rdma_context above({.cqe = 32768});
  const auto enabled = above.enable();
  REQUIRE_FALSE(enabled);
  CHECK(enabled.error().detail() ==
        "context_config.cqe 32768 is above the device's limit of 32767");
  CHECK(s.finish().empty());
}

TEST_CASE("case 28: cqe above the limit can be clamped, and the real size is readable") {
  shim::session s;
  auto context = rdma_context::open({.cqe = 70000, .clamp_cqe = true});
  REQUIRE(context);
  CHECK(context->cq(0)->cqe == 32767);
  CHECK(context->reset());
  CHECK(s.finish().empty());
}

}  // namespace ibvxx::limits_cases
