// A transport over several NICs, each a context of its own: it uses those that work.
#pragma once

#include <cstddef>
#include <ibvxx/ibvxx.hpp>
#include <string>
#include <utility>
#include <vector>

/// For one thread. It keeps no state: each context has its own.
class transport {
 public:
  explicit transport(const std::vector<std::string>& devices) {
    nics_.reserve(devices.size());
    for (const std::string& device : devices)
      nics_.emplace_back(
          ibvxx::context_config{.device_name = device, .comp_channels = 2, .cqs = 4, .cqe = 256});
  }

  /// Enables the NICs that are not enabled; one that fails owns nothing and is tried again by the
  /// next call. Returns the first error, even though other NICs can be used.
  ibvxx::result<void> start() {
    ibvxx::result<void> outcome;
    for (ibvxx::rdma_context& nic : nics_)
      if (auto enabled = nic.enable(); !enabled && outcome) outcome = enabled;
    return outcome;
  }

  /// The NIC to use next, in turn; EAGAIN where none is enabled.
  ibvxx::result<ibvxx::rdma_context*> next() {
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      ibvxx::rdma_context& nic = nics_[turn_++ % nics_.size()];
      if (nic.state() == ibvxx::context_state::enabled) return &nic;
    }
    ibvxx::error none(ibvxx::verb::none, EAGAIN);
    const char* separator = "";
    for (const ibvxx::rdma_context& nic : nics_) {
      none.explain("%s%s is %s", separator, nic.config().device_name.c_str(), name(nic.state()));
      separator = ", ";
    }
    return ibvxx::failure(none);
  }

  /// Reads the events of the devices and follows them. Call it when an epoll descriptor is
  /// readable, or periodically.
  ibvxx::result<void> follow() {
    ibvxx::result<void> outcome;
    for (ibvxx::rdma_context& nic : nics_) {
      if (!nic.ready()) continue;
      if (auto events = nic.process_async_events(); !events && outcome)
        outcome = ibvxx::failure(events.error());
    }
    return outcome;
  }

  /// Releases lost contexts, so that the next start() can find a device that came back.
  ibvxx::result<void> recover() {
    ibvxx::result<void> outcome;
    for (ibvxx::rdma_context& nic : nics_)
      if (nic.state() == ibvxx::context_state::lost)
        if (auto gone = nic.reset(); !gone && outcome) outcome = gone;
    return outcome;
  }

  /// Releases everything, and tries again where that failed. What is left after that is still
  /// owned, and the error names it.
  ibvxx::result<void> stop(int tries = 3) {
    ibvxx::result<void> outcome;
    for (; tries > 0; --tries) {
      outcome = {};
      for (ibvxx::rdma_context& nic : nics_)
        if (auto gone = nic.reset(); !gone && outcome) outcome = gone;
      if (outcome) break;
    }
    return outcome;
  }

  [[nodiscard]] std::vector<ibvxx::rdma_context>& nics() noexcept { return nics_; }

 private:
  std::vector<ibvxx::rdma_context> nics_;
  std::size_t turn_ = 0;
};
