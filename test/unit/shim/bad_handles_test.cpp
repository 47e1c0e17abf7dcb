// Any handle that is not a live object's is an error and a finding; so is what a program passes
// to the functions of extended queue pairs and CQs.
#include <cstring>

#include "bad_handles.hpp"
#include "suite.hpp"
#include "support/trace.hpp"

namespace ibvxx::shim_bad_handles_test {

namespace {

using shim::finding_kind;
using shim::object_kind;
using test::every_handle_call;
using test::handle_call;
using test::handle_of;
using o = test::every_object;

struct fixture {
  shim::session s{{{shim::device_description::hardware()}}};
  std::optional<o> objects{std::in_place};

  /// Makes one call that must be refused, and returns what was found meanwhile.
  std::vector<shim::finding> refused_call(const handle_call& one, void* handle) {
    const std::vector<shim::finding> before = s.findings();
    CHECK(one.call(handle, *objects));
    // One that was there already is counted: a reader of ibv_wc_* is not a verb of its own.
    std::vector<shim::finding> found;
    const auto all = s.findings();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i >= before.size() || all[i].count != before[i].count) found.push_back(all[i]);
    return found;
  }
  /// Everything still works; the findings were read.
  void end() {
    const std::size_t found = s.findings().size();
    objects.reset();
    CHECK(s.live() == 0);
    CHECK(s.finish().size() == found);
  }
};

void check_found(const std::vector<shim::finding>& found,
                 std::initializer_list<finding_kind> kinds) {
  INFO(test::lines(found));
  REQUIRE(found.size() == 1);
  CHECK(std::count(kinds.begin(), kinds.end(), found[0].kind) == 1);
}

}  // namespace

TEST_CASE("a null handle is an error and a finding of every verb") {
  fixture f;
  for (const auto& one : every_handle_call()) {
    INFO("ibv_" << one.name);
    check_found(f.refused_call(one, nullptr), {finding_kind::foreign_pointer});
  }
  // The other intercepted verbs take no object, or have tests of their own.
  const std::set<verb> others = {verb::get_device_list,
                                 verb::open_device,
                                 verb::import_device,
                                 verb::fork_init,
                                 verb::is_fork_initialized,
                                 verb::ack_async_event,
                                 verb::get_device_index,
                                 verb::epoll_create1,
                                 verb::epoll_ctl,
                                 verb::fcntl,
                                 verb::close,
                                 verb::allocate};
  for (std::size_t v = 0; v < verb_count; ++v) {
    const auto one = static_cast<verb>(v);
    try {
      static_cast<void>(f.s.at(one));
    } catch (const std::logic_error&) {
      continue;
    }
    INFO(name(one));
    CHECK((f.s.calls(one) != 0 || others.count(one) != 0));
  }
  f.end();
}

TEST_CASE("a handle that no verb returned is an error and a finding of every verb") {
  fixture f;
  alignas(64) static std::byte forged[2048];
  std::memset(forged, 0x5a, sizeof forged);
  for (const auto& one : every_handle_call()) {
    INFO("ibv_" << one.name);
    check_found(f.refused_call(one, forged), {finding_kind::foreign_pointer});
  }
  CHECK(std::all_of(std::begin(forged), std::end(forged),
                    [](std::byte b) { return b == std::byte{0x5a}; }));
  f.end();
}

TEST_CASE("the handle of an object of another kind is an error and a finding of every verb") {
  fixture f;
  for (const auto& one : every_handle_call()) {
    INFO("ibv_" << one.name);
    const auto other = one.kind == object_kind::ah ? object_kind::td : object_kind::ah;
    check_found(f.refused_call(one, handle_of(*f.objects, other)), {finding_kind::wrong_kind});
  }
  f.end();
}

TEST_CASE("the handle of a destroyed object is an error and a finding of every verb") {
  fixture f;
  std::vector<std::pair<handle_call, void*>> calls;
  {
    o gone;
    for (auto& one : every_handle_call()) calls.emplace_back(one, handle_of(gone, one.kind));
  }
  for (const auto& [one, handle] : calls) {
    INFO("ibv_" << one.name);
    check_found(f.refused_call(one, handle),
                {finding_kind::use_after_destroy, finding_kind::double_destroy});
  }
  f.end();
}

TEST_CASE("a session's handles are refused after its end, without a session and in the next") {
  std::vector<std::pair<handle_call, void*>> calls;
  {
    fixture f;
    for (auto& one : every_handle_call())
      if (std::strncmp(one.name, "wr_", 3) != 0)
        calls.emplace_back(one, handle_of(*f.objects, one.kind));
    f.end();
  }
  fixture next;
  for (const auto& [one, handle] : calls) {
    INFO("ibv_" << one.name);
    CHECK(one.call(handle, *next.objects));
  }
  std::size_t found = 0;
  for (const shim::finding& one : next.s.findings()) found += one.count;
  CHECK(found >= calls.size());
  next.end();
}

TEST_CASE("the functions of an extended queue pair accept null lists and absurd counts") {
  fixture f;
  ibv_qp_ex* qp = ::ibv_qp_to_qp_ex(f.objects->built.get());
  ibv_data_buf nothing{nullptr, 16};
  const auto refused = [&](int code, auto&& build) {
    ::ibv_wr_start(qp);
    ::ibv_wr_send(qp);
    build();
    CHECK(::ibv_wr_complete(qp) == code);
  };
  f.s.expect(finding_kind::foreign_pointer, "a null pointer as sg_list");
  refused(EINVAL, [&] { ::ibv_wr_set_sge_list(qp, 1, nullptr); });
  refused(ENOMEM, [&] { ::ibv_wr_set_sge_list(qp, SIZE_MAX, nullptr); });
  f.s.expect(finding_kind::foreign_pointer, "a null pointer as buf_list");
  refused(EINVAL, [&] { ::ibv_wr_set_inline_data_list(qp, 1, nullptr); });
  f.s.expect(finding_kind::foreign_pointer, "a null pointer as inline data");
  refused(EINVAL, [&] { ::ibv_wr_set_inline_data_list(qp, 1, &nothing); });
  refused(ENOMEM, [&] { ::ibv_wr_set_inline_data(qp, &nothing, SIZE_MAX / 2); });
  f.s.expect(finding_kind::foreign_pointer);
  refused(EINVAL, [&] { ::ibv_wr_set_ud_addr(qp, nullptr, 0, 0); });
  f.end();
}

TEST_CASE("a copy of an extended queue pair or CQ is not a valid handle") {
  fixture f;
  const ibv_qp_ex* qp = ::ibv_qp_to_qp_ex(f.objects->built.get());
  auto copy = std::make_unique<ibv_qp_ex>(*qp);
  for (int i = 0; i < 4; ++i) f.s.expect(finding_kind::foreign_pointer);
  ::ibv_wr_start(copy.get());
  ::ibv_wr_send(copy.get());
  ::ibv_wr_set_sge(copy.get(), 0, 0, 0);
  CHECK(::ibv_wr_complete(copy.get()) == EINVAL);
  auto queue = std::make_unique<ibv_cq_ex>(*f.objects->polled.get());
  f.s.expect(finding_kind::foreign_pointer);
  CHECK(::ibv_wc_read_vendor_err(queue.get()) == 0);
  f.end();
}

}  // namespace ibvxx::shim_bad_handles_test
