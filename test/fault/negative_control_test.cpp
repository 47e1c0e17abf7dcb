// Contexts that are wrong on purpose. A suite that did not report them would prove nothing.
#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::negative_control_test {
using shim::finding_kind;

namespace {

/// The bug that ibvxx exists for: cleanup guarded by a state that is still "disabled" while the
/// context opens.
class guarded_by_a_state {
 public:
  ~guarded_by_a_state() { close(); }

  result<void> open() {
    auto list = get_device_list();
    if (!list) return failure(list.error());
    device_ = ::ibv_open_device((*list)[0]);
    if (!device_) return fail(verb::open_device);
    pd_ = ::ibv_alloc_pd(device_);
    if (!pd_) return fail(verb::alloc_pd);
    cq_ = ::ibv_create_cq(device_, 16, nullptr, nullptr, 0);
    if (!cq_) return fail(verb::create_cq);
    enabled_ = true;
    return {};
  }

  void close() {
    if (!enabled_) return;  // nothing is released from a context that is only half open
    ::ibv_destroy_cq(cq_);
    ::ibv_dealloc_pd(pd_);
    ::ibv_close_device(device_);
    enabled_ = false;
  }

 private:
  result<void> fail(verb call) {
    const int code = errno;
    close();
    return failure(error(call, code));
  }

  bool enabled_ = false;
  ibv_context* device_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
};

/// What the three below open: a device, a PD, a channel and a CQ on it.
struct opened {
  ibv_context* device = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;

  opened() {
    ibv_device** list = ibv_get_device_list(nullptr);
    device = ::ibv_open_device(list[0]);
    ::ibv_free_device_list(list);
    pd = ::ibv_alloc_pd(device);
    channel = ::ibv_create_comp_channel(device);
    cq = ::ibv_create_cq(device, 16, nullptr, channel, 0);
  }
};

}  // namespace

TEST_CASE("control: cleanup guarded by a state flag is reported as leaks, wherever opening fails") {
  const auto report = shim::sweep([] { return guarded_by_a_state().open(); });
  INFO(report.text());
  CHECK_FALSE(report.clean());
  const auto leaks_after = [&](const char* injected) {
    return std::count_if(report.failures.begin(), report.failures.end(), [&](const auto& failure) {
      return failure.injected.rfind(injected, 0) == 0 && failure.what.rfind("left alive: ", 0) == 0;
    });
  };
  CHECK(leaks_after("ibv_open_device") == 0);        // nothing was open yet
  CHECK(leaks_after("ibv_alloc_pd") == 2 * 1);       // the device, once and persistently
  CHECK(leaks_after("ibv_create_cq") == 2 * 3 * 2);  // device and PD, for each of three errnos
}

TEST_CASE(
    "control: a forgotten CQ is reported as a leak, and its channel and device as destroyed in "
    "use") {
  shim::session s;
  const opened o;
  CHECK(::ibv_destroy_comp_channel(o.channel) == EBUSY);
  CHECK(::ibv_dealloc_pd(o.pd) == 0);
  CHECK(::ibv_close_device(o.device) == 0);
  const auto findings = s.finish();
  INFO(test::lines(findings));
  CHECK(test::count(findings, finding_kind::destroyed_in_use) == 2);
  REQUIRE(test::count(findings, finding_kind::leak) == 2);
  CHECK(findings[2].text.find("CQ#1 of sim0, made by ibv_create_cq") == 0);
}

TEST_CASE("control: parents destroyed first are reported, each with the children it had") {
  shim::session s;
  const opened o;
  std::byte memory[64];
  ibv_mr* mr = ibv_reg_mr(o.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  CHECK(::ibv_close_device(o.device) == 0);  // as libibverbs: it succeeds, and the children dangle
  CHECK(::ibv_dealloc_pd(o.pd) == EBUSY);
  CHECK(::ibv_destroy_comp_channel(o.channel) == EBUSY);
  CHECK(::ibv_dereg_mr(mr) == 0);
  CHECK(::ibv_dealloc_pd(o.pd) == 0);
  CHECK(::ibv_destroy_cq(o.cq) == 0);
  CHECK(::ibv_destroy_comp_channel(o.channel) == 0);
  const auto findings = s.finish();
  INFO(test::lines(findings));
  REQUIRE(findings.size() == 3);
  CHECK(test::count(findings, finding_kind::destroyed_in_use) == 3);
  CHECK(findings[0].text.find("context#1 of sim0 while it is used by PD#1 of sim0, completion "
                              "channel#1 of sim0, CQ#1 of sim0") != std::string::npos);
  CHECK(findings[1].text.find("PD#1 of sim0 while it is used by MR#1 of sim0") !=
        std::string::npos);
}

TEST_CASE("control: a double destroy is reported and touches no freed memory") {
  shim::session s;
  const opened o;
  CHECK(::ibv_destroy_cq(o.cq) == 0);
  CHECK(::ibv_destroy_cq(o.cq) == EINVAL);
  CHECK(::ibv_destroy_comp_channel(o.channel) == 0);
  CHECK(::ibv_dealloc_pd(o.pd) == 0);
  CHECK(::ibv_close_device(o.device) == 0);
  const auto findings = s.finish();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == finding_kind::double_destroy);
  CHECK(findings[0].text.find("CQ#1 of sim0, made by ibv_create_cq") != std::string::npos);
}

TEST_CASE("control: a body that swallows an error is reported by the sweep") {
  const auto report = shim::sweep([]() -> result<void> {
    static_cast<void>(get_device_list());
    return {};
  });
  CHECK_FALSE(report.clean());
  CHECK(report.failures.at(0).what == "the error was not reported: the body succeeded");
}

TEST_CASE("control: a body that reports another error is reported by the sweep") {
  const auto report = shim::sweep([]() -> result<void> {
    if (!get_device_list()) return failure(error(verb::open_device, EPERM));
    return {};
  });
  CHECK_FALSE(report.clean());
  CHECK(report.failures.at(0).what.find("the body reported another error: ibv_open_device") == 0);
}

}  // namespace ibvxx::negative_control_test
