// A transport over several NICs, each a context of its own: it goes on with those that work.
#pragma once

#include <cstddef>
#include <ibvxx/ibvxx.hpp>
#include <string>
#include <utility>
#include <vector>

/// One thread drives it. No state is kept here: each context knows its own.
class transport {
 public:
  explicit transport(const std::vector<std::string>& devices) {
    nics_.reserve(devices.size());
    for (const std::string& device : devices)
      nics_.emplace_back(
          ibvxx::context_config{.device_name = device, .comp_channels = 2, .cqs = 4, .cqe = 256});
  }

  /// Enables what is not enabled; what fails owns nothing and is tried again by the next call. The
  /// first error where some NIC could not be had, even though others can be used.
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

  /// Takes notice of what happened to the devices. Call it when an epoll descriptor is readable, or
  /// every now and then.
  ibvxx::result<void> follow() {
    ibvxx::result<void> outcome;
    for (ibvxx::rdma_context& nic : nics_) {
      if (!nic.ready()) continue;
      if (auto events = nic.process_async_events(); !events && outcome)
        outcome = ibvxx::failure(events.error());
    }
    return outcome;
  }

  /// Takes down what is lost, so that the next start() can find a device that came back.
  ibvxx::result<void> recover() {
    ibvxx::result<void> outcome;
    for (ibvxx::rdma_context& nic : nics_)
      if (nic.state() == ibvxx::context_state::lost)
        if (auto gone = nic.reset(); !gone && outcome) outcome = gone;
    return outcome;
  }

  /// Takes everything down, and tries again what would not go at first; what is left after that is
  /// told, and still owned.
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
