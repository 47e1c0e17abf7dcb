#include "intercept/operations.hpp"

#include "forward/operations.hpp"

namespace ibvxx::shim {

void install_operations(verbs_context& context) noexcept {
  install_query_operations(context);
  install_domain_operations(context);
  install_memory_operations(context);
  install_memory_window_operations(context);
  install_device_memory_operations(context);
  install_completion_queue_operations(context);
  install_polling_operations(context);
  install_queue_pair_operations(context);
  install_qp_state_operations(context);
  install_posting_operations(context);
  install_receive_operations(context);
  install_work_queue_operations(context);
  install_flow_operations(context);
}

void intercept_context(call& c, ibv_context* opened) {
  if (!c.forwarded()) return install_operations(*::verbs_get_ctx(opened));
  verbs_context ours{};
  install_operations(ours);
  replace_operations(*opened, ours);
}

}  // namespace ibvxx::shim
