#include "verb_facts.hpp"

#include <cerrno>

#include "allocation.hpp"

namespace ibvxx::shim {
namespace {

// Where from: manual pages of rdma-core 44 and of Linux, and verbs-facts as measured on Soft-RoCE.
// A verb's first errno is the one that order-2 sweeps take.
constexpr int no_memory[] = {ENOMEM};
constexpr int device_list_errnos[] = {ENOSYS, ENOMEM};
constexpr int open_errnos[] = {ENOMEM, EACCES, ENOSYS};
constexpr int import_device_errnos[] = {EOPNOTSUPP, ENOMEM, EINVAL};
constexpr int query_errnos[] = {EIO, EINVAL};
constexpr int gid_table_errnos[] = {EIO, EOPNOTSUPP};
constexpr int pkey_errnos[] = {ENOENT, EIO};
constexpr int create_errnos[] = {ENOMEM, EINVAL, EIO};
constexpr int optional_create_errnos[] = {EOPNOTSUPP, ENOMEM, EINVAL};
constexpr int channel_errnos[] = {EMFILE, ENOMEM};
constexpr int register_errnos[] = {ENOMEM, EFAULT, EINVAL};
constexpr int dmabuf_errnos[] = {EOPNOTSUPP, EINVAL, EBADF};
constexpr int rereg_errnos[] = {EOPNOTSUPP, ENOMEM, EFAULT};
constexpr int advise_errnos[] = {EOPNOTSUPP, EFAULT, EINVAL};
constexpr int import_errnos[] = {EOPNOTSUPP, ENOENT, ENOMEM};
constexpr int xrcd_errnos[] = {EOPNOTSUPP, EAGAIN, EBADF};
constexpr int flow_errnos[] = {EOPNOTSUPP, EPERM, EINVAL, ENOMEM};
constexpr int optional_change_errnos[] = {EOPNOTSUPP, EINVAL};
constexpr int change_errnos[] = {EINVAL, ENOMEM, EIO};
constexpr int address_errnos[] = {ENOMEM, EINVAL, ENODATA};
constexpr int from_wc_errnos[] = {EINVAL, EPROTONOSUPPORT};
constexpr int resolve_errnos[] = {EHOSTUNREACH, EINVAL};
constexpr int attach_errnos[] = {ENOMEM, EINVAL};
constexpr int detach_errnos[] = {EINVAL, EIO};
constexpr int dm_copy_errnos[] = {EINVAL, EFAULT};
constexpr int post_errnos[] = {ENOMEM, EINVAL, EIO};
constexpr int bind_errnos[] = {EINVAL, ENOMEM};
constexpr int fork_errnos[] = {EINVAL, ENOMEM};
constexpr int destroy_errnos[] = {EBUSY, EIO};
constexpr int device_error[] = {EIO};
constexpr int epoll_create_errnos[] = {EMFILE, ENFILE, ENOMEM};
constexpr int epoll_ctl_errnos[] = {ENOMEM, ENOSPC};
constexpr int fcntl_errnos[] = {EBADF};
constexpr int close_errnos[] = {EIO, EINTR};

}  // namespace

verb_facts facts_of(verb call) noexcept {
  switch (call) {
    // devices
    case verb::get_device_list:
      return {device_list_errnos, true, false};
    case verb::open_device:
      return {open_errnos, true, false};
    case verb::import_device:
      return {import_device_errnos, true, false};
    case verb::query_device:
    case verb::query_device_ex:
    case verb::query_port:
    case verb::query_gid:
    case verb::query_gid_ex:
    case verb::query_qp:
    case verb::query_srq:
      return {query_errnos, true, false};
    case verb::query_gid_table:
      return {gid_table_errnos, true, false};
    case verb::query_pkey:
    case verb::get_pkey_index:
      return {pkey_errnos, true, false};
    case verb::fork_init:
      return {fork_errnos, true, false};
    // domains and memory
    case verb::alloc_pd:
      return {no_memory, true, false};
    case verb::import_pd:
    case verb::import_mr:
    case verb::import_dm:
      return {import_errnos, true, false};
    case verb::open_xrcd:
      return {xrcd_errnos, true, false};
    case verb::reg_mr:
    case verb::reg_mr_iova:
      return {register_errnos, true, false};
    case verb::reg_dmabuf_mr:
      return {dmabuf_errnos, true, false};
    case verb::rereg_mr:
      return {rereg_errnos, true, false};
    case verb::advise_mr:
      return {advise_errnos, true, false};
    case verb::memcpy_to_dm:
    case verb::memcpy_from_dm:
      return {dm_copy_errnos, true, false};
    case verb::alloc_td:
    case verb::alloc_parent_domain:
    case verb::alloc_null_mr:
    case verb::alloc_dm:
    case verb::reg_dm_mr:
    case verb::create_cq_ex:
    case verb::create_qp_ex:
    case verb::create_srq_ex:
    case verb::create_wq:
    case verb::create_rwq_ind_table:
    case verb::create_flow_action_esp:
    case verb::create_counters:
    case verb::open_qp:
      return {optional_create_errnos, true, false};
    // completions, queue pairs, receive queues
    case verb::create_comp_channel:
      return {channel_errnos, true, false};
    case verb::create_cq:
    case verb::create_qp:
    case verb::create_srq:
    case verb::alloc_mw:
      return {create_errnos, true, false};
    case verb::resize_cq:
    case verb::modify_qp:
    case verb::modify_srq:
    case verb::modify_wq:
      return {change_errnos, true, false};
    case verb::modify_cq:
    case verb::modify_qp_rate_limit:
    case verb::modify_flow_action_esp:
    case verb::attach_counters_point_flow:
    case verb::query_rt_values_ex:
    case verb::query_ece:
    case verb::set_ece:
    case verb::get_srq_num:
    case verb::post_srq_ops:
      return {optional_change_errnos, true, false};
    case verb::read_counters:
    case verb::req_notify_cq:
    case verb::get_cq_event:
    case verb::get_async_event:
      return {device_error, true, false};
    case verb::bind_mw:
      return {bind_errnos, true, false};
    case verb::post_send:
    case verb::post_recv:
    case verb::post_srq_recv:
    case verb::post_wq_recv:
    case verb::wr_complete:
      return {post_errnos, true, false, true};
    // addresses and flows
    case verb::create_ah:
    case verb::create_ah_from_wc:
      return {address_errnos, true, false};
    case verb::init_ah_from_wc:
      return {from_wc_errnos, true, false};
    case verb::resolve_eth_l2_from_gid:
      return {resolve_errnos, true, false};
    case verb::attach_mcast:
      return {attach_errnos, true, false};
    case verb::create_flow:
      return {flow_errnos, true, false};
    // ends
    case verb::dealloc_pd:
    case verb::dealloc_td:
    case verb::close_xrcd:
    case verb::dereg_mr:
    case verb::dealloc_mw:
    case verb::free_dm:
    case verb::destroy_comp_channel:
    case verb::destroy_cq:
    case verb::destroy_qp:
    case verb::destroy_srq:
    case verb::destroy_ah:
    case verb::destroy_wq:
    case verb::destroy_rwq_ind_table:
    case verb::destroy_flow:
    case verb::destroy_flow_action:
    case verb::destroy_counters:
      return {destroy_errnos, true, true};
    case verb::detach_mcast:
      return {detach_errnos, true, true};
    case verb::epoll_create1:
      return {epoll_create_errnos, true, false};
    case verb::epoll_ctl:
      return {epoll_ctl_errnos, true, false};
    case verb::fcntl:
      return {fcntl_errnos, true, false};
    case verb::close:
      return {close_errnos, true, true};
    case verb::allocate:
      return {no_memory, IBVXX_SHIM_SEES_ALLOCATIONS != 0, false};
    // ibv_free_device_list and ibv_unimport_* are void; ibv_close_device returns 0 whatever happens
    // (rdma-core 44).
    case verb::free_device_list:
    case verb::ack_cq_events:
    case verb::ack_async_event:
    case verb::is_fork_initialized:
    case verb::query_qp_data_in_order:
      return {{}, true, false};
    case verb::close_device:
    case verb::unimport_pd:
    case verb::unimport_mr:
    case verb::unimport_dm:
      return {{}, true, true};
    case verb::poll_cq:
    case verb::start_poll:
    case verb::next_poll:
    case verb::end_poll:
    case verb::wr_start:
    case verb::wr_abort:
      return {{}, true, false, true};
    default:
      return {{}, false, false};
  }
}

convention convention_of(verb call) noexcept {
  if (kind_made_by(call)) return convention::pointer;
  switch (call) {
    case verb::query_gid:
    case verb::query_pkey:
    case verb::get_pkey_index:
    case verb::close_device:
    case verb::get_cq_event:
    case verb::get_async_event:
    case verb::init_ah_from_wc:
    case verb::resolve_eth_l2_from_gid:
    case verb::epoll_create1:
    case verb::epoll_ctl:
    case verb::fcntl:
    case verb::close:
      return convention::errno_only;
    case verb::query_gid_table:
      return convention::negative_code;
    case verb::start_poll:
    case verb::next_poll:
      return convention::code;
    case verb::rereg_mr:  // a number of its own, and errno for one of them
    case verb::poll_cq:
      return convention::other;
    default:
      return facts_of(call).errnos.empty() || call == verb::allocate ? convention::other
                                                                     : convention::code;
  }
}

std::optional<object_kind> kind_made_by(verb call) noexcept {
  switch (call) {
    case verb::get_device_list:
      return object_kind::device_list;
    case verb::open_device:
    case verb::import_device:
      return object_kind::context;
    case verb::alloc_pd:
    case verb::alloc_parent_domain:
    case verb::import_pd:
      return object_kind::pd;
    case verb::alloc_td:
      return object_kind::td;
    case verb::open_xrcd:
      return object_kind::xrcd;
    case verb::reg_mr:
    case verb::reg_mr_iova:
    case verb::reg_dmabuf_mr:
    case verb::reg_dm_mr:
    case verb::alloc_null_mr:
    case verb::import_mr:
      return object_kind::mr;
    case verb::alloc_mw:
      return object_kind::mw;
    case verb::alloc_dm:
    case verb::import_dm:
      return object_kind::dm;
    case verb::create_comp_channel:
      return object_kind::comp_channel;
    case verb::create_cq:
    case verb::create_cq_ex:
      return object_kind::cq;
    case verb::create_qp:
    case verb::create_qp_ex:
    case verb::open_qp:
      return object_kind::qp;
    case verb::create_srq:
    case verb::create_srq_ex:
      return object_kind::srq;
    case verb::create_wq:
      return object_kind::wq;
    case verb::create_rwq_ind_table:
      return object_kind::rwq_ind_table;
    case verb::create_ah:
    case verb::create_ah_from_wc:
      return object_kind::ah;
    case verb::create_flow:
      return object_kind::flow;
    case verb::create_flow_action_esp:
      return object_kind::flow_action;
    case verb::create_counters:
      return object_kind::counters;
    default:
      return std::nullopt;
  }
}

bool ends_its_object(verb call) noexcept {
  return call == verb::free_device_list ||
         (facts_of(call).destroys && call != verb::detach_mcast && call != verb::close);
}

bool takes_requests(verb call) noexcept {
  return call == verb::post_send || call == verb::post_recv || call == verb::post_srq_recv ||
         call == verb::post_wq_recv || call == verb::post_srq_ops;
}

bool can_fail_after_effect(verb call) noexcept {
  switch (call) {
    case verb::modify_qp:
    case verb::modify_srq:
    case verb::modify_wq:
    case verb::resize_cq:
    case verb::req_notify_cq:
    case verb::attach_mcast:
      return true;
    default:
      return facts_of(call).destroys && convention_of(call) == convention::code;
  }
}

}  // namespace ibvxx::shim
