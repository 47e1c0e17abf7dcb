// The differences in behaviour between simulated devices.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>

namespace ibvxx::shim {

/// Every difference between devices that the simulation knows, one field each. The default is
/// Soft-RoCE's (rdma_rxe of Linux 6.1 with rdma-core 44), and each of its values was measured
/// there. Each field names the source of hardware()'s value, none of which was measured here:
/// "mlx5" is rdma-core 44's providers/mlx5 and the kernel's drivers/infiniband/hw/mlx5, "IBA" the
/// InfiniBand Architecture Specification, volume 1.
struct device_behaviour {
  // Creation.

  /// The errno of a creation beyond the device's limit of objects of that kind. mlx5.
  int too_many_objects = EINVAL;
  /// ibv_create_cq_ex with an unknown bit in comp_mask sets errno. Otherwise it leaves errno as it
  /// is. mlx5.
  bool unknown_cq_mask_sets_errno = false;
  /// ibv_create_cq_ex accepts IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN. mlx5.
  bool cq_ignores_overrun_on_request = false;
  /// ibv_create_qp_ex accepts IBV_QP_EX_WITH_ATOMIC_WRITE, though no device carries the request
  /// out. mlx5.
  bool takes_atomic_write_flag = true;
  /// Every queue pair of ibv_create_qp_ex is an ibv_qp_ex. Otherwise only with send_ops_flags.
  /// mlx5.
  bool always_extended_qp = true;

  // ibv_modify_qp and ibv_query_qp.

  /// Refuses a path_mtu below IBV_MTU_256. mlx5.
  bool checks_path_mtu_minimum = false;
  /// Refuses a max_dest_rd_atomic above max_qp_rd_atom. mlx5.
  bool checks_max_dest_rd_atomic = false;
  /// Refuses a pkey_index that is not in the table. IBA 10.6.1.
  bool checks_pkey_index = false;
  /// RTS to SQD waits for a request that has begun and is not answered. IBA 10.3.1.
  bool sqd_waits_for_begun_request = false;
  /// IBV_EVENT_SQ_DRAINED is raised only with en_sqd_async_notify. IBA 11.2.5.3.
  bool drained_event_on_request = false;
  /// Requests that were posted in SQD begin when the queue pair enters RTS. Otherwise with the next
  /// request. IBA 10.3.1.
  bool rts_begins_queued_requests = false;
  /// ibv_query_qp fills every field and a current cur_qp_state. Otherwise it leaves
  /// en_sqd_async_notify and rate_limit as they are, and is_global is always 1. mlx5.
  bool query_qp_is_complete = false;

  // Posting.

  /// Posting refuses an atomic whose address is not a multiple of 8. Otherwise the responder does.
  /// IBA 9.4.5.
  bool misaligned_atomic_refused_at_post = true;
  /// The errno of more inline data than the queue pair holds. mlx5.
  int too_much_inline_data = EINVAL;
  /// The errno of a batch of ibv_wr_* calls that does not fit. mlx5.
  int batch_does_not_fit = ENOSPC;
  /// A post refused for the queue pair's state sets *bad_wr and not errno. Otherwise errno and not
  /// *bad_wr. mlx5.
  bool state_refusal_sets_bad_wr = false;
  /// A receive that is posted in ERR is flushed. Otherwise it stays until the next modify to ERR.
  /// IBA 10.3.1.
  bool flushes_receives_posted_in_error = false;
  /// Slots of the send queue are free once a completion was polled that is not older than their
  /// requests. Otherwise once the request has completed. mlx5.
  bool slots_free_when_polled = false;

  // Sending.

  /// Without an active port a request fails at once with IBV_WC_LOC_QP_OP_ERR. Otherwise it is not
  /// answered. IBA 9.9.2.
  bool port_down_fails_at_once = true;
  /// The status of a request whose lkey the device does not know. IBA 10.6.3.
  ibv_wc_status unknown_lkey = IBV_WC_LOC_QP_OP_ERR;
  /// A failed request of UD and UC puts the send queue into SQE. Otherwise the queue pair into ERR.
  /// IBA 10.3.1.
  bool unconnected_qp_enters_sqe = false;
  /// A Q_Key with its highest bit set means the sender's own. IBA 10.2.5.
  bool high_qkey_means_own = false;

  // Responding.

  /// A message that does not fit the receive: the status of the requester. IBA 9.7.5.2.
  ibv_wc_status message_too_long = IBV_WC_REM_OP_ERR;
  /// And of the receive. IBA 10.10.3.
  ibv_wc_status receive_too_short = IBV_WC_LOC_QP_OP_ERR;
  /// The status of a receive whose memory cannot be written. IBA 10.10.3.
  ibv_wc_status receive_memory_fault = IBV_WC_LOC_QP_OP_ERR;
  /// The first message in RTR raises IBV_EVENT_COMM_EST. IBA 11.6.3.
  bool raises_comm_est = false;
  /// A refused request raises IBV_EVENT_QP_ACCESS_ERR or IBV_EVENT_QP_REQ_ERR at the responder.
  /// IBA 11.6.3.
  bool raises_responder_errors = false;

  // Completions.

  /// The completion of a send with immediate data has IBV_WC_WITH_IMM. mlx5.
  bool send_completion_has_imm_flag = true;
  /// The completion of a receive on a connected queue pair has IBV_WC_GRH. mlx5.
  bool receive_always_has_grh_flag = true;
  /// Completions with an error count as solicited. Otherwise the message decides. IBA 11.4.2.2.
  bool errors_are_solicited = false;
  /// A queue pair with an SRQ that enters ERR raises IBV_EVENT_QP_LAST_WQE_REACHED. IBA 11.6.3.
  bool raises_last_wqe_reached = false;
  /// RESET and destroy take a queue pair's completions out of its queues. mlx5 (mlx5_cq_clean).
  bool purges_completions = false;

  // Memory.

  /// The errno of ibv_dereg_mr while windows are bound to the region. mlx5.
  int region_has_windows = EINVAL;
  /// Binding a window refuses access bits that windows do not have. mlx5.
  bool checks_window_access = false;
  /// Binding a window refuses a region of another protection domain. IBA 10.6.7.2.
  bool checks_window_domain = false;

  /// The default: Soft-RoCE.
  [[nodiscard]] static device_behaviour soft_roce() noexcept { return {}; }
  /// Common hardware (mlx5).
  [[nodiscard]] static device_behaviour hardware() noexcept;
};

}  // namespace ibvxx::shim
