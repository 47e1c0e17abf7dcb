// Queues of work requests, whose keys and buffers the device can look up. Header only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "device/device.hpp"
#include "device/ring.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

/// A ring of requests that counts, in its device's table of keys, by how many of its entries each
/// key is named. Costs: those of the ring, and for each entry of a request a constant; in strict
/// sessions logarithmic in the buffers posted.
template <class Request>
class request_queue {
 public:
  request_queue() = default;
  request_queue(const request_queue&) = delete;
  request_queue& operator=(const request_queue&) = delete;

  /// Must come before the first request.
  void attach(sim_device& device) noexcept { device_ = &device; }
  [[nodiscard]] std::size_t size() const noexcept { return requests_.size(); }
  [[nodiscard]] bool empty() const noexcept { return requests_.empty(); }
  [[nodiscard]] const Request& front() noexcept { return requests_.front(); }
  [[nodiscard]] const Request& operator[](std::size_t place) noexcept { return requests_[place]; }

  /// Adds a request: `fill` is called with its slot, which still holds what it held when it was
  /// used last.
  template <class Fill>
  void append(Fill&& fill) {
    Request& slot = requests_.append();
    fill(slot);
    for (const ibv_sge& one : slot.sges) device_->keys.refer(one.lkey >> 8);
  }
  /// Makes the buffers of the last request ones that sim_device::posted finds.
  void index_buffers(const record& queue) {
    Request& last = requests_[requests_.size() - 1];
    last.places.clear();
    for (const ibv_sge& one : last.sges)
      last.places.push_back(device_->posted->insert(one.addr, end_of(one), {&queue, last.wr_id}));
  }
  void pop() noexcept {
    withdraw(requests_.front());
    requests_.pop();
  }
  /// Keeps the first `kept` requests only.
  void truncate(std::size_t kept) noexcept {
    for (std::size_t i = kept; i < requests_.size(); ++i) withdraw(requests_[i]);
    requests_.truncate(kept);
  }
  void clear() noexcept { truncate(0); }
  /// clear(), which also frees the memory of the slots.
  void release() noexcept {
    clear();
    requests_ = {};
  }

 private:
  void withdraw(Request& request) noexcept {
    for (const ibv_sge& one : request.sges) device_->keys.unrefer(one.lkey >> 8);
    if constexpr (requires { request.places; }) {
      for (const std::uint32_t place : request.places) device_->posted->erase(place);
      request.places.clear();
    }
  }

  sim_device* device_ = nullptr;
  ring<Request> requests_{};
};

}  // namespace ibvxx::shim
