#include "core/verb_table.hpp"

#include <cerrno>
#include <cstddef>

#include "core/sees_allocations.hpp"

namespace ibvxx::shim {
namespace {

// Where the errnos come from: the manual pages of rdma-core 44 and of Linux, and docs/facts. A
// verb's first errno is the one that order-2 sweeps take.
constexpr int no_memory[] = {ENOMEM};
constexpr int device_list_errnos[] = {ENOSYS, ENOMEM};
constexpr int open_errnos[] = {ENOMEM, EACCES, ENOSYS};
constexpr int import_device_errnos[] = {EOPNOTSUPP, ENOMEM, EINVAL};
// ibv_get_device_index sets no errno: the toolkit reports EOPNOTSUPP.
constexpr int device_index_errnos[] = {EOPNOTSUPP};
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

// A scope of its own for the names of the enumerators.
namespace verb_rows {

using enum operation;
using enum convention;
using enum object_kind;
using enum ends;

/// The common rows, in short.
[[nodiscard]] constexpr verb_row creates(verb call, operation at, object_kind kind,
                                         std::span<const int> errnos) noexcept {
  return {.call = call, .at = at, .reports = pointer, .errnos = errnos, .makes = kind};
}
[[nodiscard]] constexpr verb_row destroys(verb call, operation at) noexcept {
  return {.call = call,
          .at = at,
          .reports = code,
          .errnos = destroy_errnos,
          .ending = subject,
          .can_fail_after_effect = true};
}
[[nodiscard]] constexpr verb_row returns_code(verb call, operation at,
                                              std::span<const int> errnos) noexcept {
  return {.call = call, .at = at, .reports = code, .errnos = errnos};
}

/// In the order of the enumeration. ibv_free_device_list and ibv_unimport_* are void;
/// ibv_close_device returns 0 in every case (rdma-core 44): no sweep injects a failure of these.
constexpr std::array<verb_row, verb_count> rows{{
    {.call = verb::none, .has_subject = false},
    // devices
    {.call = verb::get_device_list,
     .at = exported,
     .reports = pointer,
     .errnos = device_list_errnos,
     .makes = device_list,
     .has_subject = false},
    {.call = verb::free_device_list, .at = exported, .ending = subject},
    {.call = verb::open_device,
     .at = exported,
     .reports = pointer,
     .errnos = open_errnos,
     .makes = context,
     .has_subject = false},
    {.call = verb::import_device,
     .at = exported,
     .reports = pointer,
     .errnos = import_device_errnos,
     .makes = context,
     .has_subject = false},
    {.call = verb::close_device, .at = exported, .reports = minus_one, .ending = subject},
    {.call = verb::get_device_guid},
    {.call = verb::get_device_index,
     .at = exported,
     .reports = negative_value,
     .errnos = device_index_errnos,
     .has_subject = false},
    returns_code(verb::query_device, exported, query_errnos),
    returns_code(verb::query_device_ex, context_slot, query_errnos),
    returns_code(verb::query_port, context_slot, query_errnos),
    {.call = verb::query_port_speed},
    {.call = verb::query_gid, .at = exported, .reports = minus_one, .errnos = query_errnos},
    returns_code(verb::query_gid_ex, exported, query_errnos),
    {.call = verb::query_gid_table,
     .at = exported,
     .reports = negative_code,
     .errnos = gid_table_errnos},
    {.call = verb::query_pkey, .at = exported, .reports = minus_one, .errnos = pkey_errnos},
    {.call = verb::get_pkey_index, .at = exported, .reports = minus_one, .errnos = pkey_errnos},
    returns_code(verb::query_rt_values_ex, context_slot, optional_change_errnos),
    {.call = verb::fork_init,
     .at = exported,
     .reports = code,
     .errnos = fork_errnos,
     .has_subject = false},
    {.call = verb::is_fork_initialized, .at = exported, .has_subject = false},
    // domains
    creates(verb::alloc_pd, exported, pd, no_memory),
    destroys(verb::dealloc_pd, exported),
    creates(verb::import_pd, exported, pd, import_errnos),
    {.call = verb::unimport_pd, .at = exported, .ending = subject},
    creates(verb::alloc_parent_domain, context_slot, pd, optional_create_errnos),
    creates(verb::alloc_td, context_slot, td, optional_create_errnos),
    destroys(verb::dealloc_td, context_slot),
    creates(verb::open_xrcd, context_slot, xrcd, xrcd_errnos),
    destroys(verb::close_xrcd, context_slot),
    // memory
    creates(verb::reg_mr, exported, mr, register_errnos),
    creates(verb::reg_mr_iova, exported, mr, register_errnos),
    {.call = verb::reg_mr_ex},
    creates(verb::reg_dmabuf_mr, exported, mr, dmabuf_errnos),
    creates(verb::reg_dm_mr, context_slot, mr, optional_create_errnos),
    creates(verb::alloc_null_mr, context_slot, mr, optional_create_errnos),
    creates(verb::import_mr, exported, mr, import_errnos),
    {.call = verb::unimport_mr, .at = exported, .ending = subject},
    {.call = verb::rereg_mr, .at = exported, .reports = rereg_code, .errnos = rereg_errnos},
    returns_code(verb::advise_mr, context_slot, advise_errnos),
    destroys(verb::dereg_mr, exported),
    creates(verb::alloc_mw, context_slot, mw, create_errnos),
    returns_code(verb::bind_mw, context_slot, bind_errnos),
    destroys(verb::dealloc_mw, context_slot),
    creates(verb::alloc_dm, context_slot, dm, optional_create_errnos),
    destroys(verb::free_dm, context_slot),
    creates(verb::import_dm, exported, dm, import_errnos),
    {.call = verb::unimport_dm, .at = exported, .ending = subject},
    returns_code(verb::memcpy_to_dm, object_slot, dm_copy_errnos),
    returns_code(verb::memcpy_from_dm, object_slot, dm_copy_errnos),
    {.call = verb::dm_export_dmabuf_fd},
    {.call = verb::alloc_dmah},
    {.call = verb::dealloc_dmah},
    {.call = verb::alloc_buf},
    {.call = verb::free_buf},
    {.call = verb::reg_buf_mr},
    {.call = verb::export_buf_dmabuf_fd},
    // completions and events
    creates(verb::create_comp_channel, exported, comp_channel, channel_errnos),
    destroys(verb::destroy_comp_channel, exported),
    creates(verb::create_cq, exported, cq, create_errnos),
    creates(verb::create_cq_ex, context_slot, cq, optional_create_errnos),
    {.call = verb::resize_cq,
     .at = exported,
     .reports = code,
     .errnos = change_errnos,
     .can_fail_after_effect = true},
    returns_code(verb::modify_cq, context_slot, optional_change_errnos),
    destroys(verb::destroy_cq, exported),
    {.call = verb::req_notify_cq,
     .at = context_slot,
     .reports = code,
     .errnos = device_error,
     .can_fail_after_effect = true},
    {.call = verb::poll_cq, .at = context_slot, .reports = negative_value, .traced = false},
    {.call = verb::start_poll, .at = object_slot, .reports = code, .traced = false},
    {.call = verb::next_poll, .at = object_slot, .reports = code, .traced = false},
    {.call = verb::end_poll, .at = object_slot, .traced = false},
    {.call = verb::get_cq_event, .at = exported, .reports = minus_one, .errnos = device_error},
    {.call = verb::ack_cq_events, .at = exported},
    {.call = verb::get_async_event, .at = exported, .reports = minus_one, .errnos = device_error},
    {.call = verb::ack_async_event, .at = exported, .has_subject = false},
    // queue pairs and receive queues
    creates(verb::create_qp, exported, qp, create_errnos),
    creates(verb::create_qp_ex, context_slot, qp, optional_create_errnos),
    creates(verb::open_qp, context_slot, qp, optional_create_errnos),
    {.call = verb::modify_qp,
     .at = exported,
     .reports = code,
     .errnos = change_errnos,
     .can_fail_after_effect = true},
    returns_code(verb::modify_qp_rate_limit, context_slot, optional_change_errnos),
    returns_code(verb::query_qp, exported, query_errnos),
    {.call = verb::query_qp_data_in_order, .at = exported},
    returns_code(verb::query_ece, exported, optional_change_errnos),
    returns_code(verb::set_ece, exported, optional_change_errnos),
    {.call = verb::post_send,
     .at = context_slot,
     .reports = code,
     .errnos = post_errnos,
     .traced = false,
     .takes_requests = true},
    {.call = verb::post_recv,
     .at = context_slot,
     .reports = code,
     .errnos = post_errnos,
     .traced = false,
     .takes_requests = true},
    {.call = verb::wr_start, .at = object_slot, .traced = false},
    {.call = verb::wr_complete,
     .at = object_slot,
     .reports = code,
     .errnos = post_errnos,
     .traced = false},
    {.call = verb::wr_abort, .at = object_slot, .traced = false},
    destroys(verb::destroy_qp, exported),
    creates(verb::create_srq, exported, srq, create_errnos),
    creates(verb::create_srq_ex, context_slot, srq, optional_create_errnos),
    {.call = verb::modify_srq,
     .at = exported,
     .reports = code,
     .errnos = change_errnos,
     .can_fail_after_effect = true},
    returns_code(verb::query_srq, exported, query_errnos),
    returns_code(verb::get_srq_num, context_slot, optional_change_errnos),
    {.call = verb::post_srq_recv,
     .at = context_slot,
     .reports = code,
     .errnos = post_errnos,
     .traced = false,
     .takes_requests = true},
    {.call = verb::post_srq_ops,
     .at = context_slot,
     .reports = code,
     .errnos = optional_change_errnos,
     .takes_requests = true},
    destroys(verb::destroy_srq, exported),
    creates(verb::create_wq, context_slot, wq, optional_create_errnos),
    {.call = verb::modify_wq,
     .at = context_slot,
     .reports = code,
     .errnos = change_errnos,
     .can_fail_after_effect = true},
    {.call = verb::post_wq_recv,
     .at = object_slot,
     .reports = code,
     .errnos = post_errnos,
     .traced = false,
     .takes_requests = true},
    destroys(verb::destroy_wq, context_slot),
    creates(verb::create_rwq_ind_table, context_slot, rwq_ind_table, optional_create_errnos),
    destroys(verb::destroy_rwq_ind_table, context_slot),
    // addresses
    creates(verb::create_ah, exported, ah, address_errnos),
    {.call = verb::init_ah_from_wc, .at = exported, .reports = minus_one, .errnos = from_wc_errnos},
    creates(verb::create_ah_from_wc, exported, ah, address_errnos),
    destroys(verb::destroy_ah, exported),
    {.call = verb::attach_mcast,
     .at = exported,
     .reports = code,
     .errnos = attach_errnos,
     .can_fail_after_effect = true},
    {.call = verb::detach_mcast,
     .at = exported,
     .reports = code,
     .errnos = detach_errnos,
     .ending = other,
     .can_fail_after_effect = true},
    {.call = verb::resolve_eth_l2_from_gid,
     .at = exported,
     .reports = minus_one,
     .errnos = resolve_errnos},
    // flows and counters
    creates(verb::create_flow, context_slot, flow, flow_errnos),
    destroys(verb::destroy_flow, context_slot),
    creates(verb::create_flow_action_esp, context_slot, flow_action, optional_create_errnos),
    returns_code(verb::modify_flow_action_esp, context_slot, optional_change_errnos),
    destroys(verb::destroy_flow_action, context_slot),
    creates(verb::create_counters, context_slot, counters, optional_create_errnos),
    returns_code(verb::attach_counters_point_flow, context_slot, optional_change_errnos),
    returns_code(verb::read_counters, context_slot, device_error),
    destroys(verb::destroy_counters, context_slot),
    {.call = verb::create_comp_cntr},
    {.call = verb::destroy_comp_cntr},
    {.call = verb::query_comp_cntr_caps},
    {.call = verb::qp_attach_comp_cntr},
    {.call = verb::set_comp_cntr},
    {.call = verb::set_err_comp_cntr},
    {.call = verb::inc_comp_cntr},
    {.call = verb::inc_err_comp_cntr},
    {.call = verb::read_comp_cntr},
    {.call = verb::read_err_comp_cntr},
    // the system, as contexts use it
    {.call = verb::epoll_create1,
     .at = c_library,
     .reports = minus_one,
     .errnos = epoll_create_errnos,
     .has_subject = false},
    {.call = verb::epoll_ctl, .at = c_library, .reports = minus_one, .errnos = epoll_ctl_errnos},
    {.call = verb::epoll_wait},
    {.call = verb::poll},
    {.call = verb::eventfd},
    {.call = verb::fcntl, .at = c_library, .reports = minus_one, .errnos = fcntl_errnos},
    {.call = verb::close,
     .at = c_library,
     .reports = minus_one,
     .errnos = close_errnos,
     .ending = other},
    {.call = verb::allocate,
     .at = IBVXX_SHIM_SEES_ALLOCATIONS != 0 ? c_library : operation::none,
     .reports = bad_alloc,
     .errnos = no_memory,
     .has_subject = false},
}};
static_assert([] {
  for (std::size_t i = 0; i < verb_count; ++i)
    if (rows[i].call != static_cast<verb>(i)) return false;
  return true;
}());

}  // namespace verb_rows
}  // namespace

constexpr std::array<verb_row, verb_count> verb_table = verb_rows::rows;

}  // namespace ibvxx::shim
