// Arguments that are no objects: null pointers, absurd sizes and numbers, lists without an end.
#include <sys/mman.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "suite.hpp"
#include "support/every_object.hpp"
#include "support/loopback.hpp"
#include "support/trace.hpp"

namespace ibvxx::shim_bad_arguments_test {

namespace {

using shim::finding_kind;
using o = test::every_object;

struct fixture {
  shim::session s{{{shim::device_description::hardware()}}};
  std::optional<o> objects{std::in_place};

  void end() {
    objects.reset();
    const auto findings = s.finish();
    INFO(test::lines(findings));
    CHECK(findings.empty());
  }
};

/// A verb with a null pointer where libibverbs follows one, and what that is called.
struct null_call {
  const char* name;
  const char* argument;
  std::function<int(o&)> call;  ///< 0: the verb did not refuse
};

template <class Call>
null_call with_null(const char* name, const char* argument, Call&& call) {
  return {name, argument, [call](o& x) {
            using made = decltype(call(x));
            if constexpr (std::is_void_v<made>) {
              call(x);
              return 1;
            } else if constexpr (std::is_pointer_v<made>) {
              return call(x) == nullptr ? 1 : 0;
            } else {
              return static_cast<int>(call(x));
            }
          }};
}

verbs_context& slots(o& x) {
  return *::verbs_get_ctx(x.context.get());
}

std::vector<null_call> queries() {
  static ibv_ah_attr address;
  static ibv_wc wc;
  static ibv_grh grh;
  static ibv_qp_attr attr;
  static ibv_cq* cq;
  static void* cq_context;
  static std::uint8_t mac[6];
  return {
      with_null("query_device", "device_attr",
                [](o& x) { return ::ibv_query_device(x.context.get(), nullptr); }),
      with_null("query_device_ex", "attr",
                [](o& x) {
                  return slots(x).query_device_ex(x.context.get(), nullptr, nullptr,
                                                  sizeof(ibv_device_attr_ex));
                }),
      with_null("query_port", "port_attr",
                [](o& x) {
                  return slots(x).query_port(x.context.get(), 1, nullptr, sizeof(ibv_port_attr));
                }),
      with_null("query_rt_values_ex", "values",
                [](o& x) { return slots(x).query_rt_values(x.context.get(), nullptr); }),
      with_null("query_gid", "gid",
                [](o& x) { return ::ibv_query_gid(x.context.get(), 1, 0, nullptr); }),
      with_null("query_gid_ex", "entry",
                [](o& x) { return ::ibv_query_gid_ex(x.context.get(), 1, 0, nullptr, 0); }),
      with_null("query_gid_table", "entries",
                [](o& x) { return ::ibv_query_gid_table(x.context.get(), nullptr, 4, 0); }),
      with_null("query_pkey", "pkey",
                [](o& x) { return ::ibv_query_pkey(x.context.get(), 1, 0, nullptr); }),
      with_null("query_qp", "attr",
                [](o& x) { return ::ibv_query_qp(x.qp.get(), nullptr, 0, nullptr); }),
      with_null("query_qp", "init_attr",
                [](o& x) { return ::ibv_query_qp(x.qp.get(), &attr, 0, nullptr); }),
      with_null("query_ece", "ece", [](o& x) { return ::ibv_query_ece(x.qp.get(), nullptr); }),
      with_null("set_ece", "ece", [](o& x) { return ::ibv_set_ece(x.qp.get(), nullptr); }),
      with_null("query_srq", "srq_attr",
                [](o& x) { return ::ibv_query_srq(x.srq.get(), nullptr); }),
      with_null("get_srq_num", "srq_num",
                [](o& x) { return slots(x).get_srq_num(x.srq.get(), nullptr); }),
      with_null("read_counters", "counters_value",
                [](o& x) { return slots(x).read_counters(x.counters.get(), nullptr, 1, 0); }),
      with_null(
          "init_ah_from_wc", "wc",
          [](o& x) { return ::ibv_init_ah_from_wc(x.context.get(), 1, nullptr, &grh, &address); }),
      with_null("init_ah_from_wc", "ah_attr",
                [](o& x) { return ::ibv_init_ah_from_wc(x.context.get(), 1, &wc, &grh, nullptr); }),
      with_null("resolve_eth_l2_from_gid", "attr",
                [](o& x) {
                  return ::ibv_resolve_eth_l2_from_gid(x.context.get(), nullptr, mac, nullptr);
                }),
      with_null("resolve_eth_l2_from_gid", "eth_mac",
                [](o& x) {
                  return ::ibv_resolve_eth_l2_from_gid(x.context.get(), &address, nullptr, nullptr);
                }),
      with_null("get_cq_event", "cq",
                [](o& x) { return ::ibv_get_cq_event(x.channel.get(), nullptr, &cq_context); }),
      with_null("get_cq_event", "cq_context",
                [](o& x) { return ::ibv_get_cq_event(x.channel.get(), &cq, nullptr); }),
      with_null("get_async_event", "event",
                [](o& x) { return ::ibv_get_async_event(x.context.get(), nullptr); }),
      with_null("ack_async_event", "event", [](o&) { ::ibv_ack_async_event(nullptr); }),
      with_null("poll_cq", "wc",
                [](o& x) { return x.context->ops.poll_cq(x.cq.get(), 1, nullptr); }),
  };
}

std::vector<null_call> creations_and_changes() {
  static ibv_grh grh;
  return {
      with_null("alloc_parent_domain", "attr",
                [](o& x) { return slots(x).alloc_parent_domain(x.context.get(), nullptr); }),
      with_null("open_xrcd", "attr",
                [](o& x) { return slots(x).open_xrcd(x.context.get(), nullptr); }),
      with_null("alloc_dm", "attr",
                [](o& x) { return slots(x).alloc_dm(x.context.get(), nullptr); }),
      with_null("memcpy_to_dm", "host_addr",
                [](o& x) { return x.dm->memcpy_to_dm(x.dm.get(), 0, nullptr, 4); }),
      with_null("memcpy_from_dm", "host_addr",
                [](o& x) { return x.dm->memcpy_from_dm(nullptr, x.dm.get(), 0, 4); }),
      with_null("create_cq_ex", "cq_attr",
                [](o& x) { return slots(x).create_cq_ex(x.context.get(), nullptr); }),
      with_null("modify_cq", "attr", [](o& x) { return slots(x).modify_cq(x.cq.get(), nullptr); }),
      with_null("create_qp", "qp_init_attr",
                [](o& x) { return ::ibv_create_qp(x.pd.get(), nullptr); }),
      with_null("create_qp", "send_cq",
                [](o& x) {
                  ibv_qp_init_attr wanted{};
                  wanted.qp_type = IBV_QPT_RC;
                  return ::ibv_create_qp(x.pd.get(), &wanted);
                }),
      with_null("create_qp_ex", "qp_init_attr_ex",
                [](o& x) { return slots(x).create_qp_ex(x.context.get(), nullptr); }),
      with_null("open_qp", "qp_open_attr",
                [](o& x) { return slots(x).open_qp(x.context.get(), nullptr); }),
      with_null("modify_qp", "attr",
                [](o& x) { return ::ibv_modify_qp(x.qp.get(), nullptr, IBV_QP_STATE); }),
      with_null("modify_qp_rate_limit", "attr",
                [](o& x) { return slots(x).modify_qp_rate_limit(x.qp.get(), nullptr); }),
      with_null("create_srq", "srq_init_attr",
                [](o& x) { return ::ibv_create_srq(x.pd.get(), nullptr); }),
      with_null("create_srq_ex", "srq_init_attr_ex",
                [](o& x) { return slots(x).create_srq_ex(x.context.get(), nullptr); }),
      with_null("modify_srq", "srq_attr",
                [](o& x) { return ::ibv_modify_srq(x.srq.get(), nullptr, IBV_SRQ_LIMIT); }),
      with_null("create_wq", "attr",
                [](o& x) { return slots(x).create_wq(x.context.get(), nullptr); }),
      with_null("modify_wq", "attr", [](o& x) { return slots(x).modify_wq(x.wq.get(), nullptr); }),
      with_null("create_rwq_ind_table", "attr",
                [](o& x) { return slots(x).create_rwq_ind_table(x.context.get(), nullptr); }),
      with_null("create_rwq_ind_table", "ind_tbl",
                [](o& x) {
                  ibv_rwq_ind_table_init_attr wanted{};
                  return slots(x).create_rwq_ind_table(x.context.get(), &wanted);
                }),
      with_null("create_ah", "attr", [](o& x) { return ::ibv_create_ah(x.pd.get(), nullptr); }),
      with_null("create_ah_from_wc", "wc",
                [](o& x) { return ::ibv_create_ah_from_wc(x.pd.get(), nullptr, &grh, 1); }),
      with_null("attach_mcast", "gid",
                [](o& x) { return ::ibv_attach_mcast(x.qp.get(), nullptr, 0); }),
      with_null("detach_mcast", "gid",
                [](o& x) { return ::ibv_detach_mcast(x.qp.get(), nullptr, 0); }),
      with_null("create_flow", "flow_attr",
                [](o& x) { return slots(x).ibv_create_flow(x.qp.get(), nullptr); }),
      with_null("create_flow_action_esp", "attr",
                [](o& x) { return slots(x).create_flow_action_esp(x.context.get(), nullptr); }),
      with_null("modify_flow_action_esp", "attr",
                [](o& x) { return slots(x).modify_flow_action_esp(x.action.get(), nullptr); }),
      with_null("attach_counters_point_flow", "attr",
                [](o& x) {
                  return slots(x).attach_counters_point_flow(x.counters.get(), nullptr, nullptr);
                }),
      with_null("bind_mw", "mw_bind",
                [](o& x) { return x.context->ops.bind_mw(x.built.get(), x.mw.get(), nullptr); }),
  };
}

[[nodiscard]] ibv_qp_init_attr sizes(const o& x, std::uint32_t size) {
  auto wanted = x.plain_qp(IBV_QPT_RC);
  wanted.cap = {size, size, size, size, size};
  return wanted;
}

}  // namespace

TEST_CASE(
    "a null pointer that libibverbs would dereference is an error, and a finding that names the "
    "argument") {
  fixture f;
  for (auto* part : {&queries, &creations_and_changes}) {
    for (const auto& one : part()) {
      INFO("ibv_" << one.name << ", " << one.argument);
      const std::size_t before = f.s.findings().size();
      CHECK(one.call(*f.objects) != 0);
      const auto found = f.s.findings();
      REQUIRE(found.size() == before + 1);
      CHECK(found.back().kind == finding_kind::foreign_pointer);
      CHECK(found.back().text.find(std::string("ibv_") + one.name + " (call ") == 0);
      CHECK(found.back().text.find(std::string("a null pointer as ") + one.argument) !=
            std::string::npos);
    }
  }
  f.objects.reset();
  CHECK(f.s.live() == 0);
  static_cast<void>(f.s.finish());
}

TEST_CASE("invalid device pointers and events are errors and findings") {
  fixture f;
  ibv_device forged{};
  for (ibv_device* device : {static_cast<ibv_device*>(nullptr), &forged}) {
    for (const char* verb :
         {"ibv_open_device", "ibv_get_device_name", "ibv_get_device_guid", "ibv_get_device_index"})
      f.s.expect(finding_kind::foreign_pointer, std::string(verb) + " was given a");
    CHECK(::ibv_open_device(device) == nullptr);
    CHECK(::ibv_get_device_name(device) == nullptr);
    CHECK(::ibv_get_device_guid(device) == 0);
    CHECK(::ibv_get_device_index(device) == -1);
  }
  // Of an object that is none, nothing waits for an acknowledgement.
  ibv_async_event event{};
  event.event_type = IBV_EVENT_QP_FATAL;
  event.element.qp = reinterpret_cast<ibv_qp*>(&forged);
  ::ibv_ack_async_event(&event);
  f.end();
}

TEST_CASE("absurd sizes and numbers are refused as the kernel does, without a finding") {
  fixture f;
  o& x = *f.objects;
  static std::byte memory[64];
  for (const int cqe : {0, -1, INT_MIN, INT_MAX}) {
    CHECK(::ibv_create_cq(x.context.get(), cqe, nullptr, nullptr, 0) == nullptr);
    CHECK(::ibv_resize_cq(x.cq.get(), cqe) == EINVAL);
  }
  for (const int vector : {-1, INT_MIN, INT_MAX})
    CHECK(::ibv_create_cq(x.context.get(), 1, nullptr, nullptr, vector) == nullptr);
  for (const std::uint32_t size : {UINT32_MAX, UINT32_MAX / 2}) {
    auto wanted = sizes(x, size);
    CHECK(::ibv_create_qp(x.pd.get(), &wanted) == nullptr);
    ibv_srq_init_attr shared{nullptr, {size, size, size}};
    CHECK(::ibv_create_srq(x.pd.get(), &shared) == nullptr);
    ibv_wq_init_attr work = x.work_queue();
    work.max_wr = work.max_sge = size;
    CHECK(slots(x).create_wq(x.context.get(), &work) == nullptr);
    ibv_rwq_ind_table_init_attr table{};
    table.log_ind_tbl_size = size;
    CHECK(slots(x).create_rwq_ind_table(x.context.get(), &table) == nullptr);
    CHECK(::ibv_import_pd(x.context.get(), size) == nullptr);
    CHECK(::ibv_import_mr(x.pd.get(), size) == nullptr);
    CHECK(::ibv_import_dm(x.context.get(), size) == nullptr);
  }
  for (const std::size_t length : {SIZE_MAX, SIZE_MAX / 2, std::size_t{0}}) {
    CHECK(ibv_reg_mr(x.pd.get(), memory, length, IBV_ACCESS_LOCAL_WRITE) == nullptr);
    CHECK(slots(x).reg_dm_mr(x.pd.get(), x.dm.get(), length, length, IBV_ACCESS_ZERO_BASED) ==
          nullptr);
    ibv_alloc_dm_attr device_memory{length, 0, 0};
    CHECK(slots(x).alloc_dm(x.context.get(), &device_memory) == nullptr);
    if (length != 0) {
      CHECK(x.dm->memcpy_to_dm(x.dm.get(), 0, memory, length & ~std::size_t{3}) == EFAULT);
      CHECK(x.dm->memcpy_from_dm(memory, x.dm.get(), length & ~std::size_t{3}, 4) == EFAULT);
    }
  }
  CHECK(ibv_reg_mr(x.pd.get(), reinterpret_cast<void*>(std::uintptr_t{8}), 64, 0) == nullptr);
  CHECK(errno == EFAULT);
  for (const int fd : {-1, INT_MAX}) {
    CHECK(::ibv_import_device(fd) == nullptr);
    CHECK(::ibv_reg_dmabuf_mr(x.pd.get(), 0, 64, 0, fd, 0) == nullptr);
  }
  ibv_wc wc;
  CHECK(x.context->ops.poll_cq(x.cq.get(), INT_MIN, &wc) == 0);
  CHECK(x.context->ops.poll_cq(x.cq.get(), INT_MAX, &wc) == 0);
  ibv_gid gid;
  for (const int index : {-1, INT_MIN, INT_MAX})
    CHECK(::ibv_query_gid(x.context.get(), 1, index, &gid) == -1);
  ibv_gid_entry entry;
  CHECK(::ibv_query_gid_ex(x.context.get(), UINT32_MAX, UINT32_MAX, &entry, UINT32_MAX) == EINVAL);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_UNKNOWN;
  CHECK(::ibv_modify_qp(x.qp.get(), &attr, -1) != 0);
  CHECK(::ibv_modify_qp(x.qp.get(), &attr, IBV_QP_STATE) == EINVAL);
  f.end();
}

TEST_CASE(
    "requests with absurd lists, keys, lengths and opcodes are refused or complete in error") {
  shim::session s;
  {
    test::loopback pair;
    const auto at = reinterpret_cast<std::uintptr_t>(pair.memory);
    ibv_send_wr* bad_send = nullptr;
    ibv_recv_wr* bad_receive = nullptr;
    ibv_sge piece{at, 16, pair.region->lkey};
    for (const int count : {-1, INT_MIN, INT_MAX}) {
      ibv_send_wr send{};
      send.sg_list = &piece;
      send.num_sge = count;
      CHECK(::ibv_post_send(pair.a.get(), &send, &bad_send) == EINVAL);
      CHECK(bad_send == &send);
      ibv_recv_wr receive{1, nullptr, &piece, count};
      CHECK(::ibv_post_recv(pair.a.get(), &receive, &bad_receive) == EINVAL);
      CHECK(bad_receive == &receive);
    }
    ibv_send_wr without_list{};
    without_list.num_sge = 1;
    CHECK(::ibv_post_send(pair.a.get(), &without_list, &bad_send) == EINVAL);
    const ibv_sge pieces[] = {{at, UINT32_MAX, pair.region->lkey},
                              {UINT64_MAX, 16, pair.region->lkey},
                              {UINT64_MAX - 7, UINT32_MAX, pair.region->lkey},
                              {at, 16, UINT32_MAX},
                              {at, 16, 0}};
    for (const ibv_sge& wild : pieces) {
      for (const bool remote : {false, true}) {
        test::loopback fresh;
        ibv_sge local{reinterpret_cast<std::uintptr_t>(fresh.memory), 16, fresh.region->lkey};
        if (!remote) local = wild;
        ibv_send_wr send{};
        send.sg_list = &local;
        send.num_sge = 1;
        send.opcode = IBV_WR_RDMA_WRITE;
        send.wr.rdma = {remote ? wild.addr : at, remote ? wild.lkey : fresh.region->rkey};
        CHECK(::ibv_post_send(fresh.a.get(), &send, &bad_send) == 0);
        ibv_wc wc;
        REQUIRE(::ibv_poll_cq(fresh.send_cq.get(), 1, &wc) == 1);
        CHECK(wc.status != IBV_WC_SUCCESS);
      }
    }
    ibv_send_wr unknown{};
    unknown.opcode = static_cast<ibv_wr_opcode>(15);
    CHECK(::ibv_post_send(pair.a.get(), &unknown, &bad_send) == 0);
    ibv_wc wc;
    REQUIRE(::ibv_poll_cq(pair.send_cq.get(), 1, &wc) == 1);
    CHECK(wc.status == IBV_WC_LOC_QP_OP_ERR);
  }
  const auto findings = s.finish();
  INFO(test::lines(findings));
  CHECK(findings.empty());
}

TEST_CASE("a cyclic list of requests does not hang") {
  fixture f;
  {
    test::loopback pair;
    ibv_send_wr sends[3] = {};
    for (int i = 0; i < 3; ++i) sends[i].next = &sends[i == 2 ? 1 : i + 1];
    ibv_send_wr* bad_send = nullptr;
    f.s.expect(finding_kind::foreign_pointer, "ibv_post_send (call ");
    CHECK(::ibv_post_send(pair.a.get(), sends, &bad_send) == EINVAL);
    CHECK(bad_send == &sends[0]);
    ibv_recv_wr receive{};
    receive.next = &receive;
    ibv_recv_wr* bad_receive = nullptr;
    CHECK(::ibv_post_recv(pair.a.get(), &receive, &bad_receive) == ENOMEM);
    CHECK(::ibv_post_srq_recv(f.objects->srq.get(), &receive, &bad_receive) == ENOMEM);
    CHECK(::ibv_post_wq_recv(f.objects->wq.get(), &receive, &bad_receive) == ENOMEM);
  }
  f.end();
}

}  // namespace ibvxx::shim_bad_arguments_test
