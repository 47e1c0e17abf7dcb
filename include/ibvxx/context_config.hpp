// The configuration of a context: what to open, and how many of each object.
#pragma once

#include <chrono>
#include <ibvxx/gid_policy.hpp>
#include <ibvxx/result.hpp>
#include <string>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// The configuration of an rdma_context. The defaults work on a machine with one active port.
struct context_config {
  std::string device_name{};  ///< exact name; empty: the first device with an active port
  int port = 0;               ///< counts from 1; 0: the first active port of the device
  int gid_index = -1;         ///< index into the port's GID table; -1: chosen by `gids`
  gid_policy gids{};          ///< the policy, also after each change of the table; see choose_gid
  int comp_channels = 1;      ///< completion channels; 0: the completion queues are only polled
  int cqs = 1;     ///< completion queues, spread over channels and completion vectors in turn
  int cqe = 1024;  ///< entries of each completion queue
  bool clamp_cqe = false;       ///< reduce cqe to the device's limit instead of failing
  bool notification_cq = true;  ///< one more completion queue, on the first channel
  /// How long reset() and destroy_qp() wait for threads that still use a queue pair (use_qp).
  std::chrono::milliseconds release_timeout{1000};
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Checks the fields as far as no device is needed. EINVAL naming the field.
[[nodiscard]] inline result<void> validate(const context_config& config) noexcept {
  error e(verb::none, EINVAL);
  if (config.port < 0 || config.port > 255)
    e.explain("context_config.port %d is outside 0..255", config.port);
  else if (config.gid_index < -1)
    e.explain("context_config.gid_index %d is below -1", config.gid_index);
  else if (config.comp_channels < 0)
    e.explain("context_config.comp_channels %d is below 0", config.comp_channels);
  else if (config.cqs < 1)
    e.explain("context_config.cqs %d is below 1", config.cqs);
  else if (config.cqe < 1)
    e.explain("context_config.cqe %d is below 1", config.cqe);
  else if (config.release_timeout < std::chrono::milliseconds::zero())
    e.explain("context_config.release_timeout %lld ms is below 0",
              static_cast<long long>(config.release_timeout.count()));
  else
    return check_policy(config.gids);
  return failure(e);
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
