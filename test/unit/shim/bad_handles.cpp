// The table of calls behind every_handle_call(). Verbs that verbs.h calls through the context are
// called through it here, too: with such a handle the inline function itself would crash.
#include "bad_handles.hpp"

namespace ibvxx::test {
namespace {

using shim::object_kind;
using o = every_object;

/// Whether a verb that was given nonsense said so, by whatever convention it has.
bool refused(int code) {
  return code != 0;
}
bool refused(const void* made) {
  return made == nullptr;
}

verbs_context& slots(o& x) {
  return *::verbs_get_ctx(x.context.get());
}

template <class Type, class Call>
handle_call on(const char* name, object_kind kind, Call&& call) {
  return {name, kind, [call](void* raw, o& x) {
            auto* const handle = static_cast<Type*>(raw);
            if constexpr (std::is_void_v<decltype(call(handle, x))>) {
              call(handle, x);
              return true;
            } else {
              return refused(call(handle, x));
            }
          }};
}

// Room for what the verbs read and write.
ibv_device_attr device_attr;
ibv_device_attr_ex device_attr_ex;
ibv_port_attr port_attr;
ibv_gid gid;
ibv_gid_entry gid_entry;
__be16 pkey;
ibv_wc wc;
ibv_grh grh;
ibv_ah_attr ah_attr;
ibv_cq_init_attr_ex cq_attr;
ibv_qp_init_attr qp_attr;
ibv_qp_init_attr_ex qp_attr_ex;
ibv_qp_open_attr open_attr;
ibv_qp_attr changed_qp;
ibv_srq_init_attr srq_attr;
ibv_srq_init_attr_ex srq_attr_ex;
ibv_srq_attr changed_srq;
ibv_wq_init_attr wq_attr;
ibv_wq_attr changed_wq;
ibv_rwq_ind_table_init_attr table_attr;
ibv_xrcd_init_attr xrcd_attr;
ibv_td_init_attr td_attr;
ibv_parent_domain_init_attr domain_attr;
ibv_alloc_dm_attr dm_attr;
ibv_flow_attr flow_attr;
ibv_flow_action_esp_attr esp_attr;
ibv_counters_init_attr counters_attr;
ibv_counter_attach_attr attach_attr;
ibv_modify_cq_attr moderation;
ibv_qp_rate_limit_attr rate;
ibv_values_ex values;
ibv_ece ece;
ibv_mw_bind bind_request;
ibv_send_wr send_request;
ibv_recv_wr receive_request;
ibv_ops_wr tag_request;
ibv_send_wr* bad_send;
ibv_recv_wr* bad_receive;
ibv_ops_wr* bad_tag;
ibv_cq* named_cq;
void* named_context;
ibv_async_event async_event;
ibv_poll_cq_attr poll_attr;
std::uint8_t mac[6];
std::uint16_t vlan;
std::uint32_t number;
std::uint64_t counts[1];
std::byte bytes[64];

std::vector<handle_call> context_calls() {
  return {
      on<ibv_context>("query_device", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_query_device(h, &device_attr); }),
      on<ibv_context>("query_device_ex", object_kind::context,
                      [](ibv_context* h, o& x) {
                        return slots(x).query_device_ex(h, nullptr, &device_attr_ex,
                                                        sizeof device_attr_ex);
                      }),
      on<ibv_context>("query_port", object_kind::context,
                      [](ibv_context* h, o& x) {
                        return slots(x).query_port(h, 1, &port_attr, sizeof port_attr);
                      }),
      on<ibv_context>("query_rt_values", object_kind::context,
                      [](ibv_context* h, o& x) { return slots(x).query_rt_values(h, &values); }),
      on<ibv_context>("query_gid", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_query_gid(h, 1, 0, &gid); }),
      on<ibv_context>(
          "query_gid_ex", object_kind::context,
          [](ibv_context* h, o&) { return ::ibv_query_gid_ex(h, 1, 0, &gid_entry, 0); }),
      on<ibv_context>("query_gid_table", object_kind::context,
                      [](ibv_context* h, o&) {
                        return static_cast<int>(::ibv_query_gid_table(h, &gid_entry, 1, 0));
                      }),
      on<ibv_context>("query_pkey", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_query_pkey(h, 1, 0, &pkey); }),
      on<ibv_context>("get_pkey_index", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_get_pkey_index(h, 1, 0xffff); }),
      on<ibv_context>("alloc_pd", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_alloc_pd(h); }),
      on<ibv_context>("import_pd", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_import_pd(h, 1); }),
      on<ibv_context>("import_dm", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_import_dm(h, 1); }),
      on<ibv_context>("alloc_td", object_kind::context,
                      [](ibv_context* h, o& x) { return slots(x).alloc_td(h, &td_attr); }),
      on<ibv_context>(
          "alloc_parent_domain", object_kind::context,
          [](ibv_context* h, o& x) { return slots(x).alloc_parent_domain(h, &domain_attr); }),
      on<ibv_context>("open_xrcd", object_kind::context,
                      [](ibv_context* h, o& x) { return slots(x).open_xrcd(h, &xrcd_attr); }),
      on<ibv_context>("alloc_dm", object_kind::context,
                      [](ibv_context* h, o& x) { return slots(x).alloc_dm(h, &dm_attr); }),
      on<ibv_context>("create_comp_channel", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_create_comp_channel(h); }),
      on<ibv_context>(
          "create_cq", object_kind::context,
          [](ibv_context* h, o&) { return ::ibv_create_cq(h, 1, nullptr, nullptr, 0); }),
      on<ibv_context>("create_cq_ex", object_kind::context,
                      [](ibv_context* h, o& x) { return slots(x).create_cq_ex(h, &cq_attr); }),
      on<ibv_context>("create_qp_ex", object_kind::context,
                      [](ibv_context* h, o& x) { return slots(x).create_qp_ex(h, &qp_attr_ex); }),
      on<ibv_context>("open_qp", object_kind::context,
                      [](ibv_context* h, o& x) { return slots(x).open_qp(h, &open_attr); }),
      on<ibv_context>("create_srq_ex", object_kind::context,
                      [](ibv_context* h, o& x) { return slots(x).create_srq_ex(h, &srq_attr_ex); }),
      on<ibv_context>("create_wq", object_kind::context,
                      [](ibv_context* h, o& x) { return slots(x).create_wq(h, &wq_attr); }),
      on<ibv_context>(
          "create_rwq_ind_table", object_kind::context,
          [](ibv_context* h, o& x) { return slots(x).create_rwq_ind_table(h, &table_attr); }),
      on<ibv_context>(
          "create_flow_action_esp", object_kind::context,
          [](ibv_context* h, o& x) { return slots(x).create_flow_action_esp(h, &esp_attr); }),
      on<ibv_context>(
          "create_counters", object_kind::context,
          [](ibv_context* h, o& x) { return slots(x).create_counters(h, &counters_attr); }),
      on<ibv_context>(
          "init_ah_from_wc", object_kind::context,
          [](ibv_context* h, o&) { return ::ibv_init_ah_from_wc(h, 1, &wc, &grh, &ah_attr); }),
      on<ibv_context>("resolve_eth_l2_from_gid", object_kind::context,
                      [](ibv_context* h, o&) {
                        return ::ibv_resolve_eth_l2_from_gid(h, &ah_attr, mac, &vlan);
                      }),
      on<ibv_context>("get_async_event", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_get_async_event(h, &async_event); }),
      on<ibv_context>("close_device", object_kind::context,
                      [](ibv_context* h, o&) { return ::ibv_close_device(h); }),
      on<ibv_device*>("free_device_list", object_kind::device_list,
                      [](ibv_device** h, o&) { ::ibv_free_device_list(h); }),
      on<ibv_comp_channel>("destroy_comp_channel", object_kind::comp_channel,
                           [](ibv_comp_channel* h, o&) { return ::ibv_destroy_comp_channel(h); }),
      on<ibv_comp_channel>(
          "get_cq_event", object_kind::comp_channel,
          [](ibv_comp_channel* h, o&) { return ::ibv_get_cq_event(h, &named_cq, &named_context); }),
      on<ibv_td>("dealloc_td", object_kind::td,
                 [](ibv_td* h, o& x) { return slots(x).dealloc_td(h); }),
      on<ibv_xrcd>("close_xrcd", object_kind::xrcd,
                   [](ibv_xrcd* h, o& x) { return slots(x).close_xrcd(h); }),
      on<ibv_flow>("destroy_flow", object_kind::flow,
                   [](ibv_flow* h, o& x) { return slots(x).ibv_destroy_flow(h); }),
      on<ibv_flow_action>("destroy_flow_action", object_kind::flow_action,
                          [](ibv_flow_action* h, o& x) { return slots(x).destroy_flow_action(h); }),
      on<ibv_flow_action>(
          "modify_flow_action_esp", object_kind::flow_action,
          [](ibv_flow_action* h, o& x) { return slots(x).modify_flow_action_esp(h, &esp_attr); }),
      on<ibv_counters>("destroy_counters", object_kind::counters,
                       [](ibv_counters* h, o& x) { return slots(x).destroy_counters(h); }),
      on<ibv_counters>(
          "read_counters", object_kind::counters,
          [](ibv_counters* h, o& x) { return slots(x).read_counters(h, counts, 1, 0); }),
      on<ibv_counters>("attach_counters_point_flow", object_kind::counters,
                       [](ibv_counters* h, o& x) {
                         return slots(x).attach_counters_point_flow(h, &attach_attr, nullptr);
                       }),
  };
}

std::vector<handle_call> memory_calls() {
  return {
      on<ibv_pd>(
          "reg_mr", object_kind::pd,
          [](ibv_pd* h, o&) { return ibv_reg_mr(h, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE); }),
      on<ibv_pd>("reg_mr_iova", object_kind::pd,
                 [](ibv_pd* h, o&) {
                   return ::ibv_reg_mr_iova2(h, bytes, sizeof bytes, 0, IBV_ACCESS_ZERO_BASED);
                 }),
      on<ibv_pd>("reg_dmabuf_mr", object_kind::pd,
                 [](ibv_pd* h, o&) { return ::ibv_reg_dmabuf_mr(h, 0, 64, 0, 0, 0); }),
      on<ibv_pd>("reg_dm_mr", object_kind::pd,
                 [](ibv_pd* h, o& x) {
                   return slots(x).reg_dm_mr(h, x.dm.get(), 0, 64, IBV_ACCESS_ZERO_BASED);
                 }),
      on<ibv_pd>("alloc_null_mr", object_kind::pd,
                 [](ibv_pd* h, o& x) { return slots(x).alloc_null_mr(h); }),
      on<ibv_pd>("import_mr", object_kind::pd, [](ibv_pd* h, o&) { return ::ibv_import_mr(h, 1); }),
      on<ibv_pd>("advise_mr", object_kind::pd,
                 [](ibv_pd* h, o& x) {
                   return slots(x).advise_mr(h, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 0);
                 }),
      on<ibv_pd>("alloc_mw", object_kind::pd,
                 [](ibv_pd* h, o& x) { return x.context->ops.alloc_mw(h, IBV_MW_TYPE_1); }),
      on<ibv_pd>("create_qp", object_kind::pd,
                 [](ibv_pd* h, o&) { return ::ibv_create_qp(h, &qp_attr); }),
      on<ibv_pd>("create_srq", object_kind::pd,
                 [](ibv_pd* h, o&) { return ::ibv_create_srq(h, &srq_attr); }),
      on<ibv_pd>("create_ah", object_kind::pd,
                 [](ibv_pd* h, o&) { return ::ibv_create_ah(h, &ah_attr); }),
      on<ibv_pd>("create_ah_from_wc", object_kind::pd,
                 [](ibv_pd* h, o&) { return ::ibv_create_ah_from_wc(h, &wc, &grh, 1); }),
      on<ibv_pd>("dealloc_pd", object_kind::pd, [](ibv_pd* h, o&) { return ::ibv_dealloc_pd(h); }),
      on<ibv_pd>("unimport_pd", object_kind::pd, [](ibv_pd* h, o&) { ::ibv_unimport_pd(h); }),
      on<ibv_mr>("rereg_mr", object_kind::mr,
                 [](ibv_mr* h, o&) { return ::ibv_rereg_mr(h, 0, nullptr, nullptr, 0, 0); }),
      on<ibv_mr>("dereg_mr", object_kind::mr, [](ibv_mr* h, o&) { return ::ibv_dereg_mr(h); }),
      on<ibv_mr>("unimport_mr", object_kind::mr, [](ibv_mr* h, o&) { ::ibv_unimport_mr(h); }),
      on<ibv_mw>("dealloc_mw", object_kind::mw,
                 [](ibv_mw* h, o& x) { return x.context->ops.dealloc_mw(h); }),
      on<ibv_mw>(
          "bind_mw", object_kind::mw,
          [](ibv_mw* h, o& x) { return x.context->ops.bind_mw(x.built.get(), h, &bind_request); }),
      on<ibv_dm>("free_dm", object_kind::dm, [](ibv_dm* h, o& x) { return slots(x).free_dm(h); }),
      on<ibv_dm>("unimport_dm", object_kind::dm, [](ibv_dm* h, o&) { ::ibv_unimport_dm(h); }),
      on<ibv_dm>("memcpy_to_dm", object_kind::dm,
                 [](ibv_dm* h, o& x) { return x.dm->memcpy_to_dm(h, 0, bytes, 4); }),
      on<ibv_dm>("memcpy_from_dm", object_kind::dm,
                 [](ibv_dm* h, o& x) { return x.dm->memcpy_from_dm(bytes, h, 0, 4); }),
      on<ibv_ah>("destroy_ah", object_kind::ah, [](ibv_ah* h, o&) { return ::ibv_destroy_ah(h); }),
  };
}

std::vector<handle_call> queue_calls() {
  return {
      on<ibv_cq>("resize_cq", object_kind::cq, [](ibv_cq* h, o&) { return ::ibv_resize_cq(h, 8); }),
      on<ibv_cq>("modify_cq", object_kind::cq,
                 [](ibv_cq* h, o& x) { return slots(x).modify_cq(h, &moderation); }),
      on<ibv_cq>("destroy_cq", object_kind::cq, [](ibv_cq* h, o&) { return ::ibv_destroy_cq(h); }),
      on<ibv_cq>("req_notify_cq", object_kind::cq,
                 [](ibv_cq* h, o& x) { return x.context->ops.req_notify_cq(h, 0); }),
      on<ibv_cq>("poll_cq", object_kind::cq,
                 [](ibv_cq* h, o& x) { return x.context->ops.poll_cq(h, 1, &wc); }),
      on<ibv_cq>("ack_cq_events", object_kind::cq,
                 [](ibv_cq* h, o&) { ::ibv_ack_cq_events(h, 1); }),
      on<ibv_cq_ex>("start_poll", object_kind::cq,
                    [](ibv_cq_ex* h, o& x) { return x.polled->start_poll(h, &poll_attr); }),
      on<ibv_cq_ex>("next_poll", object_kind::cq,
                    [](ibv_cq_ex* h, o& x) { return x.polled->next_poll(h); }),
      on<ibv_cq_ex>("end_poll", object_kind::cq, [](ibv_cq_ex* h, o& x) { x.polled->end_poll(h); }),
      on<ibv_cq_ex>("wc_read_opcode", object_kind::cq,
                    [](ibv_cq_ex* h, o& x) { x.polled->read_opcode(h); }),
      on<ibv_qp>("modify_qp", object_kind::qp,
                 [](ibv_qp* h, o&) { return ::ibv_modify_qp(h, &changed_qp, IBV_QP_STATE); }),
      on<ibv_qp>("query_qp", object_kind::qp,
                 [](ibv_qp* h, o&) { return ::ibv_query_qp(h, &changed_qp, 0, &qp_attr); }),
      on<ibv_qp>("modify_qp_rate_limit", object_kind::qp,
                 [](ibv_qp* h, o& x) { return slots(x).modify_qp_rate_limit(h, &rate); }),
      on<ibv_qp>("query_ece", object_kind::qp,
                 [](ibv_qp* h, o&) { return ::ibv_query_ece(h, &ece); }),
      on<ibv_qp>("set_ece", object_kind::qp, [](ibv_qp* h, o&) { return ::ibv_set_ece(h, &ece); }),
      on<ibv_qp>(
          "post_send", object_kind::qp,
          [](ibv_qp* h, o& x) { return x.context->ops.post_send(h, &send_request, &bad_send); }),
      on<ibv_qp>("post_recv", object_kind::qp,
                 [](ibv_qp* h, o& x) {
                   return x.context->ops.post_recv(h, &receive_request, &bad_receive);
                 }),
      on<ibv_qp>(
          "bind_mw", object_kind::qp,
          [](ibv_qp* h, o& x) { return x.context->ops.bind_mw(h, x.mw.get(), &bind_request); }),
      on<ibv_qp>("attach_mcast", object_kind::qp,
                 [](ibv_qp* h, o&) { return ::ibv_attach_mcast(h, &gid, 0); }),
      on<ibv_qp>("detach_mcast", object_kind::qp,
                 [](ibv_qp* h, o&) { return ::ibv_detach_mcast(h, &gid, 0); }),
      on<ibv_qp>("create_flow", object_kind::qp,
                 [](ibv_qp* h, o& x) { return slots(x).ibv_create_flow(h, &flow_attr); }),
      on<ibv_qp>("query_qp_data_in_order", object_kind::qp,
                 [](ibv_qp* h, o&) {
                   // Answers 0, "not in order", whatever is asked.
                   return ::ibv_query_qp_data_in_order(h, IBV_WR_RDMA_WRITE, 0) == 0 ? 1 : 0;
                 }),
      on<ibv_qp>("qp_to_qp_ex", object_kind::qp,
                 [](ibv_qp* h, o&) { return ::ibv_qp_to_qp_ex(h); }),
      on<ibv_qp>("destroy_qp", object_kind::qp, [](ibv_qp* h, o&) { return ::ibv_destroy_qp(h); }),
      on<ibv_qp_ex>("wr_start", object_kind::qp,
                    [](ibv_qp_ex* h, o& x) { ::ibv_qp_to_qp_ex(x.built.get())->wr_start(h); }),
      on<ibv_qp_ex>("wr_send", object_kind::qp,
                    [](ibv_qp_ex* h, o& x) { ::ibv_qp_to_qp_ex(x.built.get())->wr_send(h); }),
      on<ibv_qp_ex>(
          "wr_set_sge", object_kind::qp,
          [](ibv_qp_ex* h, o& x) { ::ibv_qp_to_qp_ex(x.built.get())->wr_set_sge(h, 0, 0, 0); }),
      on<ibv_qp_ex>(
          "wr_complete", object_kind::qp,
          [](ibv_qp_ex* h, o& x) { return ::ibv_qp_to_qp_ex(x.built.get())->wr_complete(h); }),
      on<ibv_qp_ex>("wr_abort", object_kind::qp,
                    [](ibv_qp_ex* h, o& x) { ::ibv_qp_to_qp_ex(x.built.get())->wr_abort(h); }),
      on<ibv_srq>("modify_srq", object_kind::srq,
                  [](ibv_srq* h, o&) { return ::ibv_modify_srq(h, &changed_srq, IBV_SRQ_LIMIT); }),
      on<ibv_srq>("query_srq", object_kind::srq,
                  [](ibv_srq* h, o&) { return ::ibv_query_srq(h, &changed_srq); }),
      on<ibv_srq>("get_srq_num", object_kind::srq,
                  [](ibv_srq* h, o& x) { return slots(x).get_srq_num(h, &number); }),
      on<ibv_srq>("post_srq_recv", object_kind::srq,
                  [](ibv_srq* h, o& x) {
                    return x.context->ops.post_srq_recv(h, &receive_request, &bad_receive);
                  }),
      on<ibv_srq>(
          "post_srq_ops", object_kind::srq,
          [](ibv_srq* h, o& x) { return slots(x).post_srq_ops(h, &tag_request, &bad_tag); }),
      on<ibv_srq>("destroy_srq", object_kind::srq,
                  [](ibv_srq* h, o&) { return ::ibv_destroy_srq(h); }),
      on<ibv_wq>("modify_wq", object_kind::wq,
                 [](ibv_wq* h, o& x) { return slots(x).modify_wq(h, &changed_wq); }),
      on<ibv_wq>(
          "post_wq_recv", object_kind::wq,
          [](ibv_wq* h, o& x) { return x.wq->post_recv(h, &receive_request, &bad_receive); }),
      on<ibv_wq>("destroy_wq", object_kind::wq,
                 [](ibv_wq* h, o& x) { return slots(x).destroy_wq(h); }),
      on<ibv_rwq_ind_table>(
          "destroy_rwq_ind_table", object_kind::rwq_ind_table,
          [](ibv_rwq_ind_table* h, o& x) { return slots(x).destroy_rwq_ind_table(h); }),
  };
}

/// The list as the verb returned it.
[[nodiscard]] void* list_of(o& x) {
  return const_cast<void*>(static_cast<const void*>(x.list.begin()));
}

}  // namespace

void* handle_of(o& x, object_kind kind) {
  switch (kind) {
    case object_kind::device_list:
      return list_of(x);
    case object_kind::context:
      return x.context.get();
    case object_kind::pd:
      return x.pd.get();
    case object_kind::mr:
      return x.mr.get();
    case object_kind::comp_channel:
      return x.channel.get();
    case object_kind::cq:
      return ::ibv_cq_ex_to_cq(x.polled.get());
    case object_kind::td:
      return x.td.get();
    case object_kind::xrcd:
      return x.xrcd.get();
    case object_kind::mw:
      return x.mw.get();
    case object_kind::dm:
      return x.dm.get();
    case object_kind::qp:
      return x.built.get();
    case object_kind::srq:
      return x.srq.get();
    case object_kind::ah:
      return x.ah.get();
    case object_kind::wq:
      return x.wq.get();
    case object_kind::rwq_ind_table:
      return x.table.get();
    case object_kind::flow:
      return x.flow.get();
    case object_kind::flow_action:
      return x.action.get();
    case object_kind::counters:
      return x.counters.get();
    default:
      return nullptr;
  }
}

std::vector<handle_call> every_handle_call() {
  std::vector<handle_call> all = context_calls();
  for (auto* more : {&memory_calls, &queue_calls})
    for (handle_call& one : more()) all.push_back(std::move(one));
  return all;
}

}  // namespace ibvxx::test
