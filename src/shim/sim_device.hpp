// Simulated devices and contexts.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <deque>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/shim/ledger.hpp>
#include <memory>
#include <string>
#include <vector>

namespace ibvxx::shim {

/// libibverbs' inline helpers read beyond some public structures, into fields private to it: room
/// of zeroes stands for them.
struct private_room {
  std::byte zeroes[512] = {};
};

struct sim_device {
  ibv_device verbs{};
  private_room room{};
  device_description described{};
  bool lost = false;  ///< taken away while in use
};

struct sim_context {
  static constexpr object_kind kind = object_kind::context;

  sim_context() = default;
  sim_context(const sim_context&) = delete;
  sim_context& operator=(const sim_context&) = delete;
  ~sim_context() { close_descriptors(); }

  /// Closing a device closes them; so does the end of a session, for a context that leaked.
  void close_descriptors() noexcept;

  verbs_context verbs{};  // the program holds &verbs.context
  private_room room{};
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

/// A context with every operation in place, not yet in the ledger. Null with errno where
/// descriptors have run out.
[[nodiscard]] std::shared_ptr<sim_context> make_context(const std::shared_ptr<sim_device>& device);

/// A port's description by its number, or null.
[[nodiscard]] const port_description* find_port(const sim_device& device,
                                                std::uint32_t port) noexcept;

}  // namespace ibvxx::shim
