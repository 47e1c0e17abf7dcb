#include "intercept/memory_window.hpp"

#include "device/memory_window.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  return intercepted(verb::alloc_mw, &ibv_context_ops::alloc_mw, &device::alloc_mw, pd, type);
}

int dealloc_mw(ibv_mw* mw) {
  return intercepted(verb::dealloc_mw, &ibv_context_ops::dealloc_mw, &device::dealloc_mw, mw);
}

}  // namespace

void install_memory_window_operations(verbs_context& context) noexcept {
  context.context.ops.alloc_mw = &alloc_mw;
  context.context.ops.dealloc_mw = &dealloc_mw;
}

}  // namespace ibvxx::shim
