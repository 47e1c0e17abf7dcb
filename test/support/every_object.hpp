// One object of each kind at once, on a device that offers everything, and a call of each verb on
// them: for tests that go through all verbs.
#pragma once

#include <fcntl.h>

#include <functional>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <ibvxx/shim.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ibvxx::test {

struct every_object {
  device_list list = or_throw(get_device_list());
  unique_context context = or_throw(open_device(list[0]));
  unique_pd pd = or_throw(alloc_pd(context));
  unique_td td = or_throw(alloc_td(context));
  unique_xrcd xrcd = or_throw(
      open_xrcd(context, {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT}));
  alignas(64) std::byte memory[64] = {};
  unique_mr mr = or_throw(reg_mr(pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE));
  unique_mw mw = or_throw(alloc_mw(pd, IBV_MW_TYPE_1));
  unique_dm dm = or_throw(alloc_dm(context, {64, 0, 0}));
  unique_comp_channel channel = or_throw(create_comp_channel(context));
  unique_cq cq = or_throw(create_cq(context, 16, channel.get()));
  unique_cq_ex polled = or_throw(create_cq_ex(context, extended_cq()));
  unique_srq srq = make_srq();
  unique_qp qp = make_qp(IBV_QPT_UD);
  unique_qp built = make_extended_qp();
  unique_ah ah = or_throw(create_ah(pd, address()));
  unique_wq wq = make_wq();
  unique_rwq_ind_table table = make_table();
  unique_flow flow = make_flow();
  ibv_flow_action_esp esp{};
  unique_flow_action action = or_throw(create_flow_action_esp(context, encryption()));
  unique_counters counters = or_throw(create_counters(context));
  multicast_membership member = or_throw(attach_mcast(qp, group(), 0));

  [[nodiscard]] static ibv_gid group() { return shim::gid("ff0e::ffff:239.0.0.1"); }
  [[nodiscard]] static ibv_cq_init_attr_ex extended_cq() {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 16;
    return wanted;
  }
  [[nodiscard]] static ibv_ah_attr address() {
    ibv_ah_attr wanted{};
    wanted.is_global = 1;
    wanted.port_num = 1;
    wanted.grh.sgid_index = 1;
    wanted.grh.dgid = shim::gid("::ffff:10.0.0.2");
    return wanted;
  }
  [[nodiscard]] static ibv_flow_attr steering() {
    ibv_flow_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.port = 1;
    return wanted;
  }
  [[nodiscard]] ibv_flow_action_esp_attr encryption() {
    ibv_flow_action_esp_attr wanted{};
    wanted.esp_attr = &esp;
    return wanted;
  }
  [[nodiscard]] ibv_qp_init_attr plain_qp(ibv_qp_type type) const {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq.get();
    wanted.cap = {4, 4, 1, 1, 0};
    wanted.qp_type = type;
    return wanted;
  }
  [[nodiscard]] ibv_qp_init_attr_ex extended_qp() const {
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = cq.get();
    wanted.cap = {4, 4, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.pd = pd.get();
    wanted.send_ops_flags = IBV_QP_EX_WITH_SEND;
    return wanted;
  }
  [[nodiscard]] ibv_wq_init_attr work_queue() const {
    ibv_wq_init_attr wanted{};
    wanted.pd = pd.get();
    wanted.cq = cq.get();
    wanted.max_wr = 4;
    wanted.max_sge = 1;
    return wanted;
  }
  [[nodiscard]] ibv_srq_init_attr_ex extended_srq() const {
    ibv_srq_init_attr_ex wanted{};
    wanted.comp_mask = IBV_SRQ_INIT_ATTR_PD;
    wanted.pd = pd.get();
    wanted.attr = {4, 1, 0};
    return wanted;
  }

  [[nodiscard]] unique_flow make_flow() const {
    auto wanted = steering();
    return or_throw(create_flow(qp, wanted));
  }
  [[nodiscard]] unique_srq make_srq() const {
    ibv_srq_init_attr wanted{nullptr, {4, 1, 0}};
    return or_throw(create_srq(pd, wanted));
  }
  [[nodiscard]] unique_qp make_qp(ibv_qp_type type) const {
    auto wanted = plain_qp(type);
    return or_throw(create_qp(pd, wanted));
  }
  [[nodiscard]] unique_qp make_extended_qp() const {
    auto wanted = extended_qp();
    return or_throw(create_qp_ex(context, wanted));
  }
  [[nodiscard]] unique_wq make_wq() const {
    auto wanted = work_queue();
    return or_throw(create_wq(context, wanted));
  }
  [[nodiscard]] unique_rwq_ind_table make_table() const {
    ibv_wq* queues[] = {wq.get()};
    ibv_rwq_ind_table_init_attr wanted{};
    wanted.ind_tbl = queues;
    return or_throw(create_rwq_ind_table(context, wanted));
  }
};

/// A verb of the toolkit, called so that nothing but the verb itself can refuse it; the error that
/// it gave.
struct verb_call {
  verb call;
  std::function<std::optional<error>(every_object&)> make;
};

template <class Call>
verb_call calling(verb v, Call&& make) {
  return {v, [make = std::forward<Call>(make)](every_object& o) -> std::optional<error> {
            auto outcome = make(o);
            if (outcome) return std::nullopt;
            return outcome.error();
          }};
}

/// Every verb of the toolkit that the shim sees, but for those that cannot fail.
[[nodiscard]] std::vector<verb_call> every_call();

}  // namespace ibvxx::test
