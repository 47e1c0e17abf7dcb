// Hardware's values of device_behaviour (ibvxx/shim/device_behaviour.hpp), where they differ from
// Soft-RoCE's.
#include <ibvxx/shim/device_behaviour.hpp>

namespace ibvxx::shim {

device_behaviour device_behaviour::hardware() noexcept {
  device_behaviour b;
  b.too_many_objects = ENOMEM;
  b.unknown_cq_mask_sets_errno = true;
  b.cq_ignores_overrun_on_request = true;
  b.takes_atomic_write_flag = false;
  b.always_extended_qp = false;
  b.checks_path_mtu_minimum = true;
  b.checks_max_dest_rd_atomic = true;
  b.checks_pkey_index = true;
  b.sqd_waits_for_begun_request = true;
  b.drained_event_on_request = true;
  b.rts_begins_queued_requests = true;
  b.query_qp_is_complete = true;
  b.misaligned_atomic_refused_at_post = false;
  b.too_much_inline_data = ENOMEM;
  b.batch_does_not_fit = ENOMEM;
  b.state_refusal_sets_bad_wr = true;
  b.flushes_receives_posted_in_error = true;
  b.slots_free_when_polled = true;
  b.port_down_fails_at_once = false;
  b.unknown_lkey = IBV_WC_LOC_PROT_ERR;
  b.unconnected_qp_enters_sqe = true;
  b.high_qkey_means_own = true;
  b.message_too_long = IBV_WC_REM_INV_REQ_ERR;
  b.receive_too_short = IBV_WC_LOC_LEN_ERR;
  b.receive_memory_fault = IBV_WC_LOC_PROT_ERR;
  b.raises_comm_est = true;
  b.raises_responder_errors = true;
  b.send_completion_has_imm_flag = false;
  b.receive_always_has_grh_flag = false;
  b.errors_are_solicited = true;
  b.raises_last_wqe_reached = true;
  b.purges_completions = true;
  b.region_has_windows = EBUSY;
  b.checks_window_access = true;
  b.checks_window_domain = true;
  return b;
}

}  // namespace ibvxx::shim
