// Device lists and contexts.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <deque>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/shim/ledger.hpp>
#include <memory>
#include <vector>

#include "core/call.hpp"
#include "device/device.hpp"

namespace ibvxx::shim {

/// The threads that wait for events in the descriptor of a channel or a context, which holds one
/// count for each event, and `surplus` more.
struct event_readers {
  unsigned inside = 0;      // between taking a count and taking its event
  std::size_t surplus = 0;  // counts of dropped events, which one of them takes
};

struct sim_context {
  static constexpr object_kind kind = object_kind::context;

  sim_context() = default;
  sim_context(const sim_context&) = delete;
  sim_context& operator=(const sim_context&) = delete;
  ~sim_context() { close_descriptors(); }

  /// Called when the device is closed, and at the end of a session for a leaked context.
  void close_descriptors() noexcept;

  [[nodiscard]] const device_features& offers() const noexcept {
    return device->described.features;
  }
  [[nodiscard]] const device_behaviour& behaviour() const noexcept { return device->behaviour(); }
  [[nodiscard]] const ibv_device_attr& limits() const noexcept { return device->described.limits; }

  verbs_context verbs{};  // the program holds &verbs.context
  abi_padding padding{};
  std::shared_ptr<sim_device> device{};
  int descriptors[2] = {-1, -1};               // the async descriptor and the command descriptor
  std::deque<ibv_async_event> async_events{};  // one count of the async descriptor for each
  event_readers async_readers{};
};

struct sim_device_list {
  static constexpr object_kind kind = object_kind::device_list;
  std::vector<ibv_device*> entries{};
};

namespace device {

ibv_device** get_device_list(call& c, int* num_devices);
void free_device_list(call& c, ibv_device** list);
/// The operations of the context are null: intercept/ sets them.
ibv_context* open_device(call& c, ibv_device* device);
ibv_context* import_device(call& c, int cmd_fd);
int close_device(call& c, ibv_context* context);
const char* get_device_name(call& c, ibv_device* device);
int get_device_index(call& c, ibv_device* device);
__be64 get_device_guid(call& c, ibv_device* device);

}  // namespace device
}  // namespace ibvxx::shim
