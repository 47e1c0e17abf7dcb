// The calls that an error can name: every libibverbs call that ibvxx wraps, and the system calls
// that it makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

// One row for each call: the enumerator, and the name in the C API. Undefined again below. One
// list, so that the enumeration and the names cannot differ.
#define IBVXX_VERB_TABLE(X)                                       \
  X(none, "ibvxx")                                                \
  /* devices */                                                   \
  X(get_device_list, "ibv_get_device_list")                       \
  X(free_device_list, "ibv_free_device_list")                     \
  X(open_device, "ibv_open_device")                               \
  X(import_device, "ibv_import_device")                           \
  X(close_device, "ibv_close_device")                             \
  X(get_device_guid, "ibv_get_device_guid")                       \
  X(get_device_index, "ibv_get_device_index")                     \
  X(query_device, "ibv_query_device")                             \
  X(query_device_ex, "ibv_query_device_ex")                       \
  X(query_port, "ibv_query_port")                                 \
  X(query_port_speed, "ibv_query_port_speed")                     \
  X(query_gid, "ibv_query_gid")                                   \
  X(query_gid_ex, "ibv_query_gid_ex")                             \
  X(query_gid_table, "ibv_query_gid_table")                       \
  X(query_pkey, "ibv_query_pkey")                                 \
  X(get_pkey_index, "ibv_get_pkey_index")                         \
  X(query_rt_values_ex, "ibv_query_rt_values_ex")                 \
  X(fork_init, "ibv_fork_init")                                   \
  X(is_fork_initialized, "ibv_is_fork_initialized")               \
  /* domains */                                                   \
  X(alloc_pd, "ibv_alloc_pd")                                     \
  X(dealloc_pd, "ibv_dealloc_pd")                                 \
  X(import_pd, "ibv_import_pd")                                   \
  X(unimport_pd, "ibv_unimport_pd")                               \
  X(alloc_parent_domain, "ibv_alloc_parent_domain")               \
  X(alloc_td, "ibv_alloc_td")                                     \
  X(dealloc_td, "ibv_dealloc_td")                                 \
  X(open_xrcd, "ibv_open_xrcd")                                   \
  X(close_xrcd, "ibv_close_xrcd")                                 \
  /* memory */                                                    \
  X(reg_mr, "ibv_reg_mr")                                         \
  X(reg_mr_iova, "ibv_reg_mr_iova")                               \
  X(reg_mr_ex, "ibv_reg_mr_ex")                                   \
  X(reg_dmabuf_mr, "ibv_reg_dmabuf_mr")                           \
  X(reg_dm_mr, "ibv_reg_dm_mr")                                   \
  X(alloc_null_mr, "ibv_alloc_null_mr")                           \
  X(import_mr, "ibv_import_mr")                                   \
  X(unimport_mr, "ibv_unimport_mr")                               \
  X(rereg_mr, "ibv_rereg_mr")                                     \
  X(advise_mr, "ibv_advise_mr")                                   \
  X(dereg_mr, "ibv_dereg_mr")                                     \
  X(alloc_mw, "ibv_alloc_mw")                                     \
  X(bind_mw, "ibv_bind_mw")                                       \
  X(dealloc_mw, "ibv_dealloc_mw")                                 \
  X(alloc_dm, "ibv_alloc_dm")                                     \
  X(free_dm, "ibv_free_dm")                                       \
  X(import_dm, "ibv_import_dm")                                   \
  X(unimport_dm, "ibv_unimport_dm")                               \
  X(memcpy_to_dm, "ibv_memcpy_to_dm")                             \
  X(memcpy_from_dm, "ibv_memcpy_from_dm")                         \
  X(dm_export_dmabuf_fd, "ibv_dm_export_dmabuf_fd")               \
  X(alloc_dmah, "ibv_alloc_dmah")                                 \
  X(dealloc_dmah, "ibv_dealloc_dmah")                             \
  X(alloc_buf, "ibv_alloc_buf")                                   \
  X(free_buf, "ibv_free_buf")                                     \
  X(reg_buf_mr, "ibv_reg_buf_mr")                                 \
  X(export_buf_dmabuf_fd, "ibv_export_buf_dmabuf_fd")             \
  /* completions and events */                                    \
  X(create_comp_channel, "ibv_create_comp_channel")               \
  X(destroy_comp_channel, "ibv_destroy_comp_channel")             \
  X(create_cq, "ibv_create_cq")                                   \
  X(create_cq_ex, "ibv_create_cq_ex")                             \
  X(resize_cq, "ibv_resize_cq")                                   \
  X(modify_cq, "ibv_modify_cq")                                   \
  X(destroy_cq, "ibv_destroy_cq")                                 \
  X(req_notify_cq, "ibv_req_notify_cq")                           \
  X(poll_cq, "ibv_poll_cq")                                       \
  X(start_poll, "ibv_start_poll")                                 \
  X(next_poll, "ibv_next_poll")                                   \
  X(end_poll, "ibv_end_poll")                                     \
  X(get_cq_event, "ibv_get_cq_event")                             \
  X(ack_cq_events, "ibv_ack_cq_events")                           \
  X(get_async_event, "ibv_get_async_event")                       \
  X(ack_async_event, "ibv_ack_async_event")                       \
  /* queue pairs and receive queues */                            \
  X(create_qp, "ibv_create_qp")                                   \
  X(create_qp_ex, "ibv_create_qp_ex")                             \
  X(open_qp, "ibv_open_qp")                                       \
  X(modify_qp, "ibv_modify_qp")                                   \
  X(modify_qp_rate_limit, "ibv_modify_qp_rate_limit")             \
  X(query_qp, "ibv_query_qp")                                     \
  X(query_qp_data_in_order, "ibv_query_qp_data_in_order")         \
  X(query_ece, "ibv_query_ece")                                   \
  X(set_ece, "ibv_set_ece")                                       \
  X(post_send, "ibv_post_send")                                   \
  X(post_recv, "ibv_post_recv")                                   \
  X(wr_start, "ibv_wr_start")                                     \
  X(wr_complete, "ibv_wr_complete")                               \
  X(wr_abort, "ibv_wr_abort")                                     \
  X(destroy_qp, "ibv_destroy_qp")                                 \
  X(create_srq, "ibv_create_srq")                                 \
  X(create_srq_ex, "ibv_create_srq_ex")                           \
  X(modify_srq, "ibv_modify_srq")                                 \
  X(query_srq, "ibv_query_srq")                                   \
  X(get_srq_num, "ibv_get_srq_num")                               \
  X(post_srq_recv, "ibv_post_srq_recv")                           \
  X(post_srq_ops, "ibv_post_srq_ops")                             \
  X(destroy_srq, "ibv_destroy_srq")                               \
  X(create_wq, "ibv_create_wq")                                   \
  X(modify_wq, "ibv_modify_wq")                                   \
  X(post_wq_recv, "ibv_post_wq_recv")                             \
  X(destroy_wq, "ibv_destroy_wq")                                 \
  X(create_rwq_ind_table, "ibv_create_rwq_ind_table")             \
  X(destroy_rwq_ind_table, "ibv_destroy_rwq_ind_table")           \
  /* addresses */                                                 \
  X(create_ah, "ibv_create_ah")                                   \
  X(init_ah_from_wc, "ibv_init_ah_from_wc")                       \
  X(create_ah_from_wc, "ibv_create_ah_from_wc")                   \
  X(destroy_ah, "ibv_destroy_ah")                                 \
  X(attach_mcast, "ibv_attach_mcast")                             \
  X(detach_mcast, "ibv_detach_mcast")                             \
  X(resolve_eth_l2_from_gid, "ibv_resolve_eth_l2_from_gid")       \
  /* flows and counters */                                        \
  X(create_flow, "ibv_create_flow")                               \
  X(destroy_flow, "ibv_destroy_flow")                             \
  X(create_flow_action_esp, "ibv_create_flow_action_esp")         \
  X(modify_flow_action_esp, "ibv_modify_flow_action_esp")         \
  X(destroy_flow_action, "ibv_destroy_flow_action")               \
  X(create_counters, "ibv_create_counters")                       \
  X(attach_counters_point_flow, "ibv_attach_counters_point_flow") \
  X(read_counters, "ibv_read_counters")                           \
  X(destroy_counters, "ibv_destroy_counters")                     \
  X(create_comp_cntr, "ibv_create_comp_cntr")                     \
  X(destroy_comp_cntr, "ibv_destroy_comp_cntr")                   \
  X(query_comp_cntr_caps, "ibv_query_comp_cntr_caps")             \
  X(qp_attach_comp_cntr, "ibv_qp_attach_comp_cntr")               \
  X(set_comp_cntr, "ibv_set_comp_cntr")                           \
  X(set_err_comp_cntr, "ibv_set_err_comp_cntr")                   \
  X(inc_comp_cntr, "ibv_inc_comp_cntr")                           \
  X(inc_err_comp_cntr, "ibv_inc_err_comp_cntr")                   \
  X(read_comp_cntr, "ibv_read_comp_cntr")                         \
  X(read_err_comp_cntr, "ibv_read_err_comp_cntr")                 \
  /* the system, as contexts use it */                            \
  X(epoll_create1, "epoll_create1")                               \
  X(epoll_ctl, "epoll_ctl")                                       \
  X(epoll_wait, "epoll_wait")                                     \
  X(poll, "poll")                                                 \
  X(eventfd, "eventfd")                                           \
  X(fcntl, "fcntl")                                               \
  X(close, "close")                                               \
  X(allocate, "operator new")

namespace ibvxx {

/// Every call that an `error` can name, spelled as in C without the `ibv_` prefix. `none` is an
/// error of the toolkit itself, before any call; `allocate` is memory allocation. The numeric
/// values are not stable between releases.
enum class verb : std::uint8_t {
#define IBVXX_VERB_ENUMERATOR(enumerator, c_name) enumerator,
  IBVXX_VERB_TABLE(IBVXX_VERB_ENUMERATOR)
#undef IBVXX_VERB_ENUMERATOR
};

namespace detail {

inline constexpr const char* verb_names[] = {
#define IBVXX_VERB_NAME(enumerator, c_name) c_name,
    IBVXX_VERB_TABLE(IBVXX_VERB_NAME)
#undef IBVXX_VERB_NAME
};

}  // namespace detail

/// The number of verbs; `static_cast<verb>(i)` is valid for every i below.
inline constexpr std::size_t verb_count = std::size(detail::verb_names);

/// The C name, for example "ibv_create_cq". Static storage; "?" for any other value.
[[nodiscard]] constexpr const char* name(verb v) noexcept {
  const auto i = static_cast<std::size_t>(v);
  return i < verb_count ? detail::verb_names[i] : "?";
}

}  // namespace ibvxx

#undef IBVXX_VERB_TABLE
