// Simulated devices and contexts.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/shim/ledger.hpp>
#include <memory>
#include <string>
#include <vector>

#include "key_table.hpp"

namespace ibvxx::shim {

/// libibverbs' inline helpers read beyond some public structures, into fields private to it: room
/// of zeroes stands for them.
struct abi_padding {
  std::byte zeroes[512] = {};
};

struct sim_device {
  ibv_device verbs{};
  abi_padding padding{};
  device_description described{};
  std::array<unsigned, object_kind_count> live_counts{};  // live objects by kind, for the limits
  key_table keys{};                                       // of regions and windows
  qp_table qps{};                                         // by number
  srq_table srqs{};
  std::vector<sim_qp*> multicast_members{};
  std::uint64_t dm_in_use = 0;  // bytes of device memory
  bool lost = false;            ///< taken away while in use
};

struct sim_context {
  static constexpr object_kind kind = object_kind::context;

  sim_context() = default;
  sim_context(const sim_context&) = delete;
  sim_context& operator=(const sim_context&) = delete;
  ~sim_context() { close_descriptors(); }

  /// Closing a device closes them; so does the end of a session, for a context that leaked.
  void close_descriptors() noexcept;

  [[nodiscard]] const device_features& offers() const noexcept {
    return device->described.features;
  }
  [[nodiscard]] const ibv_device_attr& limits() const noexcept { return device->described.limits; }
  [[nodiscard]] bool as_hardware() const noexcept {
    return device->described.profile == device_profile::hardware;
  }
  /// The errno of a creation when the device holds as many objects of the kind as it can.
  [[nodiscard]] int out_of_room() const noexcept { return as_hardware() ? ENOMEM : EINVAL; }

  verbs_context verbs{};  // the program holds &verbs.context
  abi_padding padding{};
  std::shared_ptr<sim_device> device{};
  int descriptors[2] = {-1, -1};               // the async descriptor and the command descriptor
  std::deque<ibv_async_event> async_events{};  // each worth one count of the async descriptor
};

struct sim_device_list {
  static constexpr object_kind kind = object_kind::device_list;
  std::vector<ibv_device*> entries{};
};

/// Devices as described. Throws std::invalid_argument, naming the field, for a description that
/// makes no sense.
[[nodiscard]] std::vector<std::shared_ptr<sim_device>> make_devices(const simulated& machine);

/// A context with every operation in place, not yet in the ledger; it takes the command descriptor
/// given, or makes one. Null with errno where descriptors have run out.
[[nodiscard]] std::shared_ptr<sim_context> make_context(const std::shared_ptr<sim_device>& device,
                                                        int cmd_fd = -1);

/// A port's description by its number, or null.
[[nodiscard]] const port_description* find_port(const sim_device& device,
                                                std::uint32_t port) noexcept;

}  // namespace ibvxx::shim
