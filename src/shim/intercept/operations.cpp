#include "intercept/operations.hpp"

#include "forward/operations.hpp"
#include "intercept/completion_queue.hpp"
#include "intercept/device_memory.hpp"
#include "intercept/domain.hpp"
#include "intercept/flow.hpp"
#include "intercept/memory.hpp"
#include "intercept/memory_window.hpp"
#include "intercept/polling.hpp"
#include "intercept/posting.hpp"
#include "intercept/qp_state.hpp"
#include "intercept/query.hpp"
#include "intercept/queue_pair.hpp"
#include "intercept/receive.hpp"
#include "intercept/work_queue.hpp"

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
