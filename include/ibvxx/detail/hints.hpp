// Explanations that are found after a failure, never before. Every function keeps errno and cannot
// fail.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ibvxx/error.hpp>

namespace ibvxx::detail {

/// Restores errno in its destructor: the functions below call others that may set it.
class errno_guard {
 public:
  errno_guard() noexcept : saved_(errno) {}
  errno_guard(const errno_guard&) = delete;
  errno_guard& operator=(const errno_guard&) = delete;
  ~errno_guard() { errno = saved_; }

 private:
  int saved_;
};

/// True if the process cannot open another descriptor. Found with a system call, since libibverbs
/// reports this as ENOSYS from ibv_get_device_list and ibv_open_device (measured, rdma-core 44).
[[nodiscard, gnu::cold]] inline bool at_descriptor_limit() noexcept {
  const errno_guard keep;
  const long fd = ::syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_CLOEXEC | O_PATH, 0);
  if (fd < 0) return errno == EMFILE || errno == ENFILE;
  ::syscall(SYS_close, fd);
  return false;
}

/// For EMFILE and ENFILE: the limit that was reached. Descriptors may be free again by now, since
/// libibverbs closes its own when it fails.
[[gnu::cold]] inline void explain_descriptor_limit(error& e) noexcept {
  const errno_guard keep;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    e.explain("no descriptor left: RLIMIT_NOFILE is %llu",
              static_cast<unsigned long long>(limit.rlim_cur));
}

/// The name of a port state, for messages.
[[nodiscard]] inline const char* port_state_name(ibv_port_state state) noexcept {
  switch (state) {
    case IBV_PORT_NOP:
      return "NOP";
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
  }
  return "?";
}

/// For ENOMEM: the locked-memory limit and the first port that is not active. Some providers return
/// ENOMEM for either.
[[gnu::cold]] inline void explain_no_memory(error& e, ibv_context* context) noexcept {
  const errno_guard keep;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    if (limit.rlim_cur == RLIM_INFINITY)
      e.explain("; RLIMIT_MEMLOCK unlimited");
    else
      e.explain("; RLIMIT_MEMLOCK %llu", static_cast<unsigned long long>(limit.rlim_cur));
  }
  ibv_device_attr device;
  if (!context || ::ibv_query_device(context, &device) != 0) return;
  for (unsigned number = 1; number <= device.phys_port_cnt; ++number) {
    ibv_port_attr port;
    if (ibv_query_port(context, static_cast<std::uint8_t>(number), &port) == 0 &&
        port.state != IBV_PORT_ACTIVE) {
      e.explain(", port %u %s", number, port_state_name(port.state));
      return;
    }
  }
}

/// For a device that cannot be opened: whether the process may open its node. If it may not,
/// libibverbs searches another directory and reports the errno of that search (ENOENT if /dev/char
/// is not populated; measured, rdma-core 44), so the node itself is checked.
[[gnu::cold]] inline void explain_permission(error& e, const char* uverbs_name) noexcept {
  const errno_guard keep;
  char node[sizeof "/dev/infiniband/" + IBV_SYSFS_NAME_MAX];
  std::snprintf(node, sizeof node, "/dev/infiniband/%s", uverbs_name);
  const bool refused = ::faccessat(AT_FDCWD, node, R_OK | W_OK, AT_EACCESS) != 0 &&
                       (errno == EACCES || errno == EPERM);
  if (refused || e.code() == EACCES || e.code() == EPERM) e.explain("no permission on %s", node);
}

/// For ENOSYS: libibverbs returns it if the kernel module is missing, and at the descriptor limit.
[[gnu::cold]] inline void explain_no_support(error& e) noexcept {
  if (at_descriptor_limit())
    explain_descriptor_limit(e);
  else
    e.explain("the kernel has no RDMA support loaded (module ib_uverbs)");
}

}  // namespace ibvxx::detail
