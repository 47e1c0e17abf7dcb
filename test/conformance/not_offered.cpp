// What Soft-RoCE does not have, and how it says so.
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

void domains(const setting& s) {
  ibv_td_init_attr td{};
  probe_pointer("alloc_td", [&] { return ibv_alloc_td(s.context, &td); });
  ibv_parent_domain_init_attr parent{};
  parent.pd = s.pd;
  probe_pointer("alloc_parent_domain", [&] { return ibv_alloc_parent_domain(s.context, &parent); });
  ibv_xrcd_init_attr xrcd{};
  xrcd.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  xrcd.fd = -1;
  probe_pointer("open_xrcd", [&] { return ibv_open_xrcd(s.context, &xrcd); });
  ibv_qp_open_attr open{};
  open.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD;
  open.qp_num = 17;
  probe_pointer("open_qp-without-xrcd", [&] {
    open.comp_mask = IBV_QP_OPEN_ATTR_NUM;
    return ibv_open_qp(s.context, &open);
  });
}

void memory(const setting& s) {
  probe_pointer("alloc_null_mr", [&] { return ibv_alloc_null_mr(s.pd); });
  ibv_alloc_dm_attr dm{};
  dm.length = 64;
  probe_pointer("alloc_dm", [&] { return ibv_alloc_dm(s.context, &dm); });
  const region mine(s, 8192);
  ibv_sge piece = mine.piece(0, 64);
  for (const int advice : {0, 1, 2})
    probe_code("advise_mr-" + std::to_string(advice), [&] {
      return ibv_advise_mr(s.pd, static_cast<ibv_advise_mr_advice>(advice), 0, &piece, 1);
    });
  for (const int flags : {0, 1, 2, 4, 8}) {
    errno = untouched;
    const int outcome =
        ibv_rereg_mr(mine.get(), flags, s.pd, mine->addr, 4096, static_cast<int>(every_access));
    const int code = errno;
    probe("rereg_mr-flags-" + std::to_string(flags),
          std::to_string(outcome) + ", errno " + errno_state(code));
  }
  probe_pointer("reg_dmabuf_mr",
                [&] { return ibv_reg_dmabuf_mr(s.pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE); });
}

void queues(const setting& s, ibv_cq* cq, ibv_qp* qp) {
  ibv_wq_init_attr wq{};
  wq.wq_type = IBV_WQT_RQ;
  wq.max_wr = wq.max_sge = 1;
  wq.pd = s.pd;
  wq.cq = cq;
  probe_pointer("create_wq", [&] { return ibv_create_wq(s.context, &wq); });
  ibv_wq* none[1] = {nullptr};
  ibv_rwq_ind_table_init_attr table{};
  table.ind_tbl = none;
  probe_pointer("create_rwq_ind_table",
                [&] { return ibv_create_rwq_ind_table(s.context, &table); });
  ibv_modify_cq_attr moderation{};
  moderation.attr_mask = IBV_CQ_ATTR_MODERATE;
  moderation.moderate = {1, 1};
  probe_code("modify_cq", [&] { return ibv_modify_cq(cq, &moderation); });
  ibv_qp_rate_limit_attr rate{};
  rate.rate_limit = 1000;
  probe_code("modify_qp_rate_limit", [&] { return ibv_modify_qp_rate_limit(qp, &rate); });
  ibv_ece ece{};
  probe_code("query_ece", [&] { return ibv_query_ece(qp, &ece); });
  probe("query_ece-options", hex(ece.options));
  probe_code("set_ece-zero", [&] { return ibv_set_ece(qp, &ece); });
  ece.vendor_id = 1;
  ece.options = 1;
  probe_code("set_ece", [&] { return ibv_set_ece(qp, &ece); });
  probe("query_qp_data_in_order",
        std::to_string(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0)));
  probe("qp_to_qp_ex-of-plain-qp", ibv_qp_to_qp_ex(qp) ? "not NULL" : "NULL");
}

void others(const setting& s, ibv_qp* qp) {
  ibv_counters_init_attr counters{};
  probe_pointer("create_counters", [&] { return ibv_create_counters(s.context, &counters); });
  ibv_flow_attr flow{};
  flow.type = IBV_FLOW_ATTR_NORMAL;
  flow.size = sizeof flow;
  flow.port = 1;
  probe_pointer("create_flow", [&] { return ibv_create_flow(qp, &flow); });
  ibv_flow_action_esp_attr esp{};
  probe_pointer("create_flow_action_esp",
                [&] { return ibv_create_flow_action_esp(s.context, &esp); });
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  probe_code("query_rt_values_ex", [&] { return ibv_query_rt_values_ex(s.context, &values); });
}

void srqs(const setting& s) {
  ibv_srq_init_attr wanted{};
  wanted.attr = {4, 1, 0};
  const auto srq = own(ibv_create_srq(s.pd, &wanted));
  std::uint32_t number = 0;
  probe_code("get_srq_num", [&] { return ibv_get_srq_num(srq.get(), &number); });
  ibv_ops_wr wr{};
  ibv_ops_wr* bad = nullptr;
  probe_code("post_srq_ops", [&] { return ibv_post_srq_ops(srq.get(), &wr, &bad); });
}

}  // namespace

void probe_not_offered(const setting& s) {
  const auto cq = make_cq(s, 4);
  const auto qp = make_qp(s, cq.get());
  domains(s);
  memory(s);
  queues(s, cq.get(), qp.get());
  others(s, qp.get());
  srqs(s);
}

}  // namespace conformance
