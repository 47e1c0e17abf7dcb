// The operations that verbs.h calls through a context or through an object.
#pragma once

#include <infiniband/verbs.h>

#include "core/call.hpp"

namespace ibvxx::shim {

/// Puts the shim's operations into a context that was just opened: all into a simulated one, those
/// that it has into a real one.
void intercept_context(call& c, ibv_context* opened);
/// The same for an extended queue (intercept/polling.cpp), an extended queue pair
/// (intercept/wr_api.cpp), a work queue, and device memory.
void intercept_cq(call& c, ibv_cq_ex* made);
void intercept_qp(call& c, ibv_qp* made);
void intercept_wq(call& c, ibv_wq* made);
void intercept_dm(call& c, ibv_dm* made);

/// Puts the shim's operations into a context that has none: all of them, or one family.
void install_operations(verbs_context& context) noexcept;
void install_query_operations(verbs_context& context) noexcept;
void install_domain_operations(verbs_context& context) noexcept;
void install_memory_operations(verbs_context& context) noexcept;
void install_memory_window_operations(verbs_context& context) noexcept;
void install_device_memory_operations(verbs_context& context) noexcept;
void install_completion_queue_operations(verbs_context& context) noexcept;
void install_polling_operations(verbs_context& context) noexcept;
void install_queue_pair_operations(verbs_context& context) noexcept;
void install_qp_state_operations(verbs_context& context) noexcept;
void install_posting_operations(verbs_context& context) noexcept;
void install_receive_operations(verbs_context& context) noexcept;
void install_work_queue_operations(verbs_context& context) noexcept;
void install_flow_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
