#include "device/fork.hpp"

#include <cerrno>

#include "device/machine.hpp"

namespace ibvxx::shim::device {

// libibverbs marks pages when they are registered, so ibv_fork_init fails after the first
// registration (rdma-core 44, memory.c; measured).
int fork_init(call& c) {
  if (c.failing()) return c.refuse_code();
  machine& own = machine_of(c.state());
  if (own.fork_ready) return 0;
  if (own.registered) return EINVAL;
  own.fork_ready = true;
  return 0;
}

// As on kernels that copy pinned pages at fork (measured on Linux 6.1).
ibv_fork_status is_fork_initialized(call&) {
  return IBV_FORK_UNNEEDED;
}

}  // namespace ibvxx::shim::device
