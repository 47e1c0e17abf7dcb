// Devices, domains, memory and completion queues: what the calls give and refuse.
#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::device_test {

namespace {

struct fixture {
  shim::session s;
  unique_context context;
  unique_pd pd;

  explicit fixture(const shim::simulated& machine = {}) : s(machine) {
    context = or_throw(open_device((*get_device_list())[0]));
    pd = or_throw(alloc_pd(context));
  }
  void end() {
    CHECK(pd.reset());
    CHECK(context.reset());
    const auto findings = s.finish();
    INFO(test::lines(findings));
    CHECK(findings.empty());
  }
};

template <class T>
std::string detail_of(const result<T>& outcome, verb call, int code) {
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().call() == call);
  CHECK(outcome.error().code() == code);
  return std::string(outcome.error().detail());
}

}  // namespace

TEST_CASE("a device list owns the list, finds exact names, and is freed once") {
  shim::session s({{{.name = "sim0"}, {.name = "sim01"}}});
  auto list = get_device_list();
  REQUIRE(list);
  CHECK(list->size() == 2);
  CHECK(list->find("sim01") == (*list)[1]);
  CHECK(list->find("sim") == nullptr);
  CHECK(list->find("sim012") == nullptr);
  device_list taken = std::move(*list);
  CHECK(list->empty());
  CHECK(list->begin() == list->end());
  CHECK(taken.size() == 2);
  *list = std::move(taken);
  device_list& self = *list;
  *list = std::move(self);
  CHECK(list->size() == 2);
  *list = device_list();
  CHECK(s.calls(verb::free_device_list) == 1);
  CHECK(s.finish().empty());
}

TEST_CASE("no device is an empty list; no kernel support is ENOSYS with a hint") {
  {
    shim::session s(shim::simulated{.devices = {}});
    const auto list = get_device_list();
    REQUIRE(list);
    CHECK(list->empty());
    const auto context = rdma_context::open({});
    CHECK(detail_of(context, verb::get_device_list, ENODEV) == "this machine has no RDMA device");
  }
  shim::session s;
  s.fail(verb::get_device_list).with(ENOSYS);
  CHECK(detail_of(get_device_list(), verb::get_device_list, ENOSYS) ==
        "the kernel has no RDMA support loaded (module ib_uverbs)");
  CHECK(s.finish().empty());
}

TEST_CASE("opening without permission names the device and its node") {
  shim::session s;
  s.fail(verb::open_device).with(EACCES);
  const auto list = get_device_list();
  const auto context = open_device((*list)[0]);
  REQUIRE_FALSE(context);
  CHECK(context.error().message() ==
        "ibv_open_device on sim0: Permission denied (EACCES): no permission on "
        "/dev/infiniband/uverbs0");
}

TEST_CASE("a pointer verb that fails without an errno is unspecified, whatever errno was before") {
  shim::session s;
  {
    auto context = or_throw(open_device((*get_device_list())[0]));
    s.fail(verb::alloc_pd).without_errno();
    errno = EXDEV;
    const auto refused = alloc_pd(context);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().unspecified());
    CHECK(refused.error().code() == EIO);
  }
  CHECK(s.finish().empty());
}

TEST_CASE("a device without a number is EOPNOTSUPP naming the device") {
  shim::session s;
  const auto devices = or_throw(get_device_list());
  CHECK(or_throw(get_device_index(devices[0])) == 0);
  s.fail(verb::get_device_index).with(EOPNOTSUPP);
  CHECK(detail_of(get_device_index(devices[0]), verb::get_device_index, EOPNOTSUPP).empty());
  CHECK(s.calls(verb::get_device_index) == 2);
}

TEST_CASE("a null raw pointer is EINVAL naming the argument, and calls nothing") {
  shim::session s;
  ibv_context* const no_context = nullptr;
  ibv_pd* const no_pd = nullptr;
  std::byte memory[8];
  CHECK(detail_of(open_device(ref<ibv_device>(static_cast<ibv_device*>(nullptr))),
                  verb::open_device, EINVAL) == "device is null");
  CHECK(detail_of(query_device(no_context), verb::query_device, EINVAL) == "context is null");
  CHECK(detail_of(query_port(no_context, 1), verb::query_port, EINVAL) == "context is null");
  CHECK(detail_of(query_gid_ex(no_context, 1, 0), verb::query_gid_ex, EINVAL) == "context is null");
  CHECK(detail_of(alloc_pd(no_context), verb::alloc_pd, EINVAL) == "context is null");
  CHECK(detail_of(create_comp_channel(no_context), verb::create_comp_channel, EINVAL) ==
        "context is null");
  CHECK(detail_of(create_cq(no_context, 1), verb::create_cq, EINVAL) == "context is null");
  CHECK(detail_of(reg_mr(no_pd, std::span(memory), 0), verb::reg_mr, EINVAL) == "pd is null");
  CHECK(s.calls(verb::get_device_list) + s.calls(verb::alloc_pd) + s.calls(verb::reg_mr) == 0);
  CHECK(s.finish().empty());
}

TEST_CASE("a port outside the device's is refused with the number") {
  fixture f;
  CHECK(detail_of(query_port(f.context, 0), verb::query_port, EINVAL) ==
        "port 0 is outside 1..255");
  CHECK(detail_of(query_port(f.context, 256), verb::query_port, EINVAL) ==
        "port 256 is outside 1..255");
  CHECK(detail_of(query_port(f.context, 2), verb::query_port, EINVAL) == "port 2");
  CHECK(query_port(f.context, 1)->state == IBV_PORT_ACTIVE);
  f.end();
}

TEST_CASE("create_cq is refused with the argument and the device's limit") {
  fixture f;
  CHECK(detail_of(create_cq(f.context, 0), verb::create_cq, EINVAL) == "cqe 0 is below 1");
  CHECK(detail_of(create_cq(f.context, -1), verb::create_cq, EINVAL) == "cqe -1 is below 1");
  CHECK(detail_of(create_cq(f.context, 32768), verb::create_cq, EINVAL) ==
        "cqe 32768 is above the device's limit of 32767");
  CHECK(detail_of(create_cq(f.context, 1, nullptr, 4), verb::create_cq, EINVAL) ==
        "comp_vector 4 is outside 0..3");
  CHECK(detail_of(create_cq(f.context, 1, nullptr, -1), verb::create_cq, EINVAL) ==
        "comp_vector -1 is outside 0..3");
  auto cq = create_cq(f.context, 32767);
  REQUIRE(cq);
  CHECK((*cq)->cqe == 32767);
  ibv_wc completions[4];
  CHECK(poll_cq(*cq, completions).value() == 0);
  CHECK(cq->reset());
  f.end();
}

TEST_CASE("a queue that is too large gives the message of docs/errors.md") {
  shim::device_description mlx5;
  mlx5.name = "mlx5_0";
  mlx5.limits.max_cqe = 65535;
  fixture f({{mlx5}});
  CHECK(create_cq(f.context, 70000).error().message() ==
        "ibv_create_cq on mlx5_0: Invalid argument (EINVAL): cqe 70000 is above the device's limit "
        "of 65535");
  f.end();
}

TEST_CASE("where no descriptor is left, the error names the limit") {
  fixture f;
  auto list = get_device_list();
  f.s.fail(verb::open_device).with(EMFILE);
  CHECK(detail_of(open_device((*list)[0]), verb::open_device, EMFILE)
            .find("no descriptor left: RLIMIT_NOFILE is ") == 0);
  f.s.fail(verb::create_comp_channel).with(EMFILE);
  CHECK(detail_of(create_comp_channel(f.context), verb::create_comp_channel, EMFILE)
            .find("no descriptor left: RLIMIT_NOFILE is ") == 0);
  *list = device_list();
  f.end();
}

TEST_CASE("an empty slot of the GID table is ENODATA, not a GID of zeros") {
  fixture f;
  CHECK(query_gid(f.context, 1, 1).value().raw[10] == 0xff);
  CHECK(detail_of(query_gid(f.context, 1, 5), verb::query_gid, ENODATA) ==
        "port 1, index 5 is an empty slot");
  f.end();
}

TEST_CASE("the error of rereg_mr has the condition of the region, one of three") {
  fixture f({{shim::device_description::hardware()}});
  std::byte memory[64];
  auto mr = or_throw(reg_mr(f.pd, std::span(memory, 32), IBV_ACCESS_LOCAL_WRITE));
  rereg_mr_left left{};
  CHECK(rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory, 64, 0, &left));
  CHECK(left == rereg_mr_left::new_region);
  CHECK(mr->length == 64);
  CHECK(rereg_mr(mr, 0, nullptr, nullptr, 0, 0, &left).error().code() == EINVAL);
  CHECK(left == rereg_mr_left::old_region);
  f.s.fail(verb::rereg_mr).with(ENOMEM);
  CHECK(detail_of(rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory, 32, 0, &left),
                  verb::rereg_mr, ENOMEM)
            .find("the region is unusable: deregister it") == 0);
  CHECK(left == rereg_mr_left::unusable);
  CHECK(mr.reset());
  f.end();
}

TEST_CASE("reg_mr refuses wrong arguments by name, before the call") {
  fixture f;
  std::byte memory[64];
  CHECK(detail_of(reg_mr(f.pd, nullptr, 8, 0), verb::reg_mr, EINVAL) == "address is null");
  CHECK(detail_of(reg_mr(f.pd, memory, 0, 0), verb::reg_mr, EINVAL) ==
        "length is 0: at least 1 byte is needed");
  CHECK(detail_of(reg_mr(f.pd, memory, SIZE_MAX, 0), verb::reg_mr, EINVAL)
            .find("wraps around the address space") != std::string::npos);
  CHECK(detail_of(reg_mr(f.pd, memory, 8, 1 << 14), verb::reg_mr, EINVAL) ==
        "access 0x4000 has unknown bits 0x4000");
  CHECK(detail_of(reg_mr(f.pd, memory, 8, IBV_ACCESS_REMOTE_WRITE), verb::reg_mr, EINVAL) ==
        "access 0x2: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE");
  CHECK(f.s.calls(verb::reg_mr) == 0);
  f.end();
}

TEST_CASE(
    "the same range registered twice gives two regions with different keys; optional access bits "
    "are passed on") {
  fixture f;
  std::byte memory[64];
  auto a = reg_mr(f.pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  auto b = reg_mr(f.pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  REQUIRE(a);
  REQUIRE(b);
  CHECK((*a)->lkey != (*b)->lkey);
  CHECK((*a)->length == 64);
  CHECK(f.s.calls(verb::reg_mr) == 2);  // whichever function the macro took
  CHECK(a->reset());
  CHECK(b->reset());
  f.end();
}

TEST_CASE("the error of ENOMEM names the locked-memory limit and a port that is not active") {
  fixture f({{{.ports = {{.state = IBV_PORT_DOWN}}}}});
  std::byte memory[64];
  f.s.fail(verb::reg_mr).with(ENOMEM);
  const auto text = detail_of(reg_mr(f.pd, std::span(memory), 0), verb::reg_mr, ENOMEM);
  INFO(text);
  CHECK(text.find("64 bytes at 0x") == 0);
  CHECK(text.find("RLIMIT_MEMLOCK") != std::string::npos);
  CHECK(text.find("port 1 DOWN") != std::string::npos);
  f.end();
}

TEST_CASE("EBUSY names what may still use the object, and a child destroyed later frees it") {
  fixture f;
  std::byte memory[64];
  auto mr = reg_mr(f.pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE);
  const auto busy = f.pd.reset();
  CHECK(detail_of(busy, verb::dealloc_pd, EBUSY) ==
        "still used by a memory region, queue pair, SRQ, AH, MW or WQ");
  CHECK(f.pd);
  CHECK(mr->reset());
  CHECK(f.pd.reset());
  CHECK(f.context.reset());
  const auto findings = f.s.finish();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == shim::finding_kind::destroyed_in_use);
}

}  // namespace ibvxx::device_test
