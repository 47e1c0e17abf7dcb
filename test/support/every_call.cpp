// The table of calls behind every_call().
#include "every_object.hpp"

namespace ibvxx::test {
namespace {

using o = every_object;

[[nodiscard]] ibv_wc received_datagram() {
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  return wc;
}

[[nodiscard]] std::vector<verb_call> creations() {
  return {
      calling(verb::get_device_list, [](o&) { return get_device_list(); }),
      calling(verb::open_device, [](o& x) { return open_device(x.list[0]); }),
      calling(verb::import_device, [](o& x) { return import_device(x.context->cmd_fd); }),
      calling(verb::alloc_pd, [](o& x) { return alloc_pd(x.context); }),
      calling(verb::import_pd, [](o& x) { return import_pd(x.context, x.pd->handle); }),
      calling(verb::alloc_td, [](o& x) { return alloc_td(x.context); }),
      calling(verb::alloc_parent_domain,
              [](o& x) {
                return alloc_parent_domain(x.context,
                                           {x.pd.get(), nullptr, 0, nullptr, nullptr, nullptr});
              }),
      calling(verb::open_xrcd,
              [](o& x) {
                return open_xrcd(x.context,
                                 {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT});
              }),
      calling(verb::reg_mr,
              [](o& x) { return reg_mr(x.pd, std::span(x.memory), IBV_ACCESS_LOCAL_WRITE); }),
      calling(verb::reg_mr_iova,
              [](o& x) {
                return reg_mr_iova(x.pd, x.memory, sizeof x.memory,
                                   reinterpret_cast<std::uintptr_t>(x.memory) & 0xfff,
                                   IBV_ACCESS_LOCAL_WRITE);
              }),
      calling(verb::reg_dmabuf_mr,
              [](o& x) { return reg_dmabuf_mr(x.pd, 0, 4096, 0, x.context->cmd_fd, 0); }),
      calling(verb::reg_dm_mr,
              [](o& x) { return reg_dm_mr(x.pd, x.dm, 0, 64, IBV_ACCESS_ZERO_BASED); }),
      calling(verb::alloc_null_mr, [](o& x) { return alloc_null_mr(x.pd); }),
      calling(verb::import_mr, [](o& x) { return import_mr(x.pd, x.mr->handle); }),
      calling(verb::alloc_mw, [](o& x) { return alloc_mw(x.pd, IBV_MW_TYPE_2); }),
      calling(verb::alloc_dm,
              [](o& x) {
                return alloc_dm(x.context, {64, 0, 0});
              }),
      calling(verb::import_dm, [](o& x) { return import_dm(x.context, x.dm->handle); }),
      calling(verb::create_comp_channel, [](o& x) { return create_comp_channel(x.context); }),
      calling(verb::create_cq, [](o& x) { return create_cq(x.context, 16); }),
      calling(verb::create_cq_ex, [](o& x) { return create_cq_ex(x.context, o::extended_cq()); }),
      calling(verb::create_qp,
              [](o& x) {
                auto wanted = x.plain_qp(IBV_QPT_RC);
                return create_qp(x.pd, wanted);
              }),
      calling(verb::create_qp_ex,
              [](o& x) {
                auto wanted = x.extended_qp();
                return create_qp_ex(x.context, wanted);
              }),
      calling(verb::open_qp,
              [](o& x) {
                ibv_qp_open_attr wanted{};
                wanted.comp_mask =
                    IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
                wanted.xrcd = x.xrcd.get();
                wanted.qp_type = IBV_QPT_XRC_RECV;
                return open_qp(x.context, wanted);
              }),
      calling(verb::create_srq,
              [](o& x) {
                ibv_srq_init_attr wanted{nullptr, {4, 1, 0}};
                return create_srq(x.pd, wanted);
              }),
      calling(verb::create_srq_ex,
              [](o& x) {
                auto wanted = x.extended_srq();
                // More than a PD, or libibverbs makes an ordinary one.
                wanted.comp_mask |=
                    IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
                wanted.srq_type = IBV_SRQT_XRC;
                wanted.xrcd = x.xrcd.get();
                wanted.cq = x.cq.get();
                return create_srq_ex(x.context, wanted);
              }),
      calling(verb::create_wq,
              [](o& x) {
                auto wanted = x.work_queue();
                return create_wq(x.context, wanted);
              }),
      calling(verb::create_rwq_ind_table,
              [](o& x) {
                ibv_wq* queues[] = {x.wq.get()};
                ibv_rwq_ind_table_init_attr wanted{};
                wanted.ind_tbl = queues;
                return create_rwq_ind_table(x.context, wanted);
              }),
      calling(verb::create_ah, [](o& x) { return create_ah(x.pd, o::address()); }),
      calling(verb::create_ah_from_wc,
              [](o& x) {
                const ibv_grh grh{};
                return create_ah_from_wc(x.pd, received_datagram(), &grh, 1);
              }),
      calling(verb::create_flow,
              [](o& x) {
                auto wanted = o::steering();
                return create_flow(x.qp, wanted);
              }),
      calling(verb::create_flow_action_esp,
              [](o& x) { return create_flow_action_esp(x.context, x.encryption()); }),
      calling(verb::create_counters, [](o& x) { return create_counters(x.context); }),
  };
}

[[nodiscard]] std::vector<verb_call> queries() {
  return {
      calling(verb::query_device, [](o& x) { return query_device(x.context); }),
      calling(verb::query_device_ex, [](o& x) { return query_device_ex(x.context); }),
      calling(verb::query_rt_values_ex, [](o& x) { return query_rt_values_ex(x.context); }),
      calling(verb::query_port, [](o& x) { return query_port(x.context, 1); }),
      calling(verb::query_gid, [](o& x) { return query_gid(x.context, 1, 0); }),
      calling(verb::query_gid_ex, [](o& x) { return query_gid_ex(x.context, 1, 0); }),
      calling(verb::query_gid_table,
              [](o& x) {
                ibv_gid_entry entries[4];
                return query_gid_table(x.context, entries);
              }),
      calling(verb::query_pkey, [](o& x) { return query_pkey(x.context, 1, 0); }),
      calling(verb::get_pkey_index, [](o& x) { return get_pkey_index(x.context, 1, 0xffff); }),
      calling(verb::query_qp, [](o& x) { return query_qp(x.qp, IBV_QP_STATE); }),
      calling(verb::query_srq, [](o& x) { return query_srq(x.srq); }),
      calling(verb::get_srq_num, [](o& x) { return get_srq_num(x.srq); }),
      calling(verb::query_ece, [](o& x) { return query_ece(x.qp); }),
      calling(verb::read_counters,
              [](o& x) {
                std::uint64_t values[1];
                return read_counters(x.counters, values);
              }),
      calling(verb::init_ah_from_wc,
              [](o& x) {
                const ibv_grh grh{};
                return init_ah_from_wc(x.context, 1, received_datagram(), &grh);
              }),
      calling(verb::resolve_eth_l2_from_gid,
              [](o& x) { return resolve_eth_l2_from_gid(x.context, o::address()); }),
      calling(verb::fork_init, [](o&) { return fork_init(); }),
      calling(verb::poll_cq,
              [](o& x) {
                ibv_wc completions[1];
                return poll_cq(x.cq, completions);
              }),
      calling(verb::start_poll, [](o& x) { return start_poll(x.polled); }),
      calling(verb::next_poll, [](o& x) { return next_poll(x.polled); }),
      calling(verb::get_cq_event, [](o& x) { return get_cq_event(x.channel); }),
      calling(verb::get_async_event, [](o& x) { return get_async_event(x.context); }),
  };
}

[[nodiscard]] std::vector<verb_call> changes() {
  return {
      calling(verb::rereg_mr,
              [](o& x) {
                return rereg_mr(x.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                                IBV_ACCESS_LOCAL_WRITE);
              }),
      calling(verb::advise_mr,
              [](o& x) {
                ibv_sge ranges[] = {
                    {reinterpret_cast<std::uintptr_t>(x.memory), sizeof x.memory, x.mr->lkey}};
                return advise_mr(x.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, ranges);
              }),
      calling(verb::memcpy_to_dm, [](o& x) { return memcpy_to_dm(x.dm, 0, x.memory, 4); }),
      calling(verb::memcpy_from_dm, [](o& x) { return memcpy_from_dm(x.memory, x.dm, 0, 4); }),
      calling(verb::resize_cq, [](o& x) { return resize_cq(x.cq, 32); }),
      calling(verb::modify_cq, [](o& x) { return modify_cq(x.cq, {}); }),
      calling(verb::req_notify_cq, [](o& x) { return req_notify_cq(x.cq); }),
      calling(verb::modify_qp,
              [](o& x) {
                ibv_qp_attr wanted{};
                wanted.qp_state = IBV_QPS_RESET;
                return modify_qp(x.qp, wanted, IBV_QP_STATE);
              }),
      calling(verb::modify_qp_rate_limit, [](o& x) { return modify_qp_rate_limit(x.qp, {}); }),
      calling(verb::set_ece,
              [](o& x) {
                ibv_ece options{1, 0, 0};
                return set_ece(x.qp, options);
              }),
      calling(verb::modify_srq,
              [](o& x) {
                ibv_srq_attr wanted{4, 1, 1};
                return modify_srq(x.srq, wanted, IBV_SRQ_LIMIT);
              }),
      calling(verb::modify_wq,
              [](o& x) {
                ibv_wq_attr wanted{};
                wanted.attr_mask = IBV_WQ_ATTR_STATE;
                wanted.wq_state = IBV_WQS_RDY;
                return modify_wq(x.wq, wanted);
              }),
      calling(verb::modify_flow_action_esp,
              [](o& x) { return modify_flow_action_esp(x.action, x.encryption()); }),
      calling(verb::attach_counters_point_flow,
              [](o& x) { return attach_counters_point_flow(x.counters, {}, x.flow.get()); }),
      calling(verb::attach_mcast, [](o& x) { return attach_mcast(x.qp, o::group(), 1); }),
      calling(verb::bind_mw, [](o& x) { return bind_mw(x.built, x.mw, {}); }),
      calling(verb::post_send,
              [](o& x) {
                ibv_send_wr request{};
                return post_send(x.built, &request);
              }),
      calling(verb::post_recv,
              [](o& x) {
                ibv_recv_wr request{};
                return post_recv(x.qp, &request);
              }),
      calling(verb::post_srq_recv,
              [](o& x) {
                ibv_recv_wr request{};
                return post_srq_recv(x.srq, &request);
              }),
      calling(verb::post_srq_ops,
              [](o& x) {
                ibv_ops_wr request{};
                request.opcode = IBV_WR_TAG_SYNC;
                return post_srq_ops(x.srq, &request);
              }),
      calling(verb::post_wq_recv,
              [](o& x) {
                ibv_recv_wr request{};
                return post_wq_recv(x.wq, &request);
              }),
      calling(verb::wr_complete,
              [](o& x) {
                wr_start(qp_to_qp_ex(x.built));
                return wr_complete(qp_to_qp_ex(x.built));
              }),
  };
}

[[nodiscard]] std::vector<verb_call> destroys() {
  return {
      calling(verb::dealloc_pd, [](o& x) { return x.pd.reset(); }),
      calling(verb::dealloc_td, [](o& x) { return x.td.reset(); }),
      calling(verb::close_xrcd, [](o& x) { return x.xrcd.reset(); }),
      calling(verb::dereg_mr, [](o& x) { return x.mr.reset(); }),
      calling(verb::dealloc_mw, [](o& x) { return x.mw.reset(); }),
      calling(verb::free_dm, [](o& x) { return x.dm.reset(); }),
      calling(verb::destroy_comp_channel, [](o& x) { return x.channel.reset(); }),
      calling(verb::destroy_cq, [](o& x) { return x.cq.reset(); }),
      calling(verb::destroy_qp, [](o& x) { return x.qp.reset(); }),
      calling(verb::destroy_srq, [](o& x) { return x.srq.reset(); }),
      calling(verb::destroy_ah, [](o& x) { return x.ah.reset(); }),
      calling(verb::destroy_wq, [](o& x) { return x.wq.reset(); }),
      calling(verb::destroy_rwq_ind_table, [](o& x) { return x.table.reset(); }),
      calling(verb::destroy_flow, [](o& x) { return x.flow.reset(); }),
      calling(verb::destroy_flow_action, [](o& x) { return x.action.reset(); }),
      calling(verb::destroy_counters, [](o& x) { return x.counters.reset(); }),
      calling(verb::detach_mcast, [](o& x) { return x.member.reset(); }),
  };
}

}  // namespace

std::vector<verb_call> every_call() {
  std::vector<verb_call> all;
  for (auto* part : {&creations, &queries, &changes, &destroys})
    for (verb_call& one : part()) all.push_back(std::move(one));
  return all;
}

}  // namespace ibvxx::test
