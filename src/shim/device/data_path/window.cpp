#include "device/data_path/window.hpp"

#include "device/memory.hpp"
#include "device/memory_window.hpp"

namespace ibvxx::shim {
namespace {

/// Whether the window and the region of a request are still alive, by their keys: they may have
/// been destroyed while the request was queued, and their memory be gone.
[[nodiscard]] bool knows_window(sim_device& device, const send_request& r) noexcept {
  const key_entry* entry = device.keys.find_key(r.window_key);
  return entry && entry->mw == r.window;
}
[[nodiscard]] bool knows_region(sim_device& device, const send_request& r) noexcept {
  const key_entry* entry = device.keys.find_key(r.region_key);
  return r.region && entry && entry->mr == r.region;
}

/// Whether a region permits a window with this access and range (rxe_check_bind_mw; measured).
[[nodiscard]] bool can_hold(const sim_qp& qp, const sim_mr& region,
                            const send_request& r) noexcept {
  constexpr unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                              IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
  constexpr unsigned writers = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((region.access & IBV_ACCESS_MW_BIND) == 0) return false;
  if (qp.context->behaviour().checks_window_access && (r.window_access & ~remote) != 0)
    return false;
  if ((r.window_access & writers) != 0 && (region.access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return false;
  return r.window_address >= region.iova && r.window_address - region.iova <= region.length &&
         r.window_length <= region.length - (r.window_address - region.iova);
}

}  // namespace

bool bind(sim_qp& qp, const send_request& r) noexcept {
  sim_device& device = *qp.context->device;
  if (!knows_window(device, r)) return false;
  sim_mw& window = *r.window;
  const bool first_type = window.verbs.type == IBV_MW_TYPE_1;
  if (window.domain != qp.domain || r.window_key != window.rkey) return false;
  // A type 1 window may be bound again, with another key each time; a type 2 window must be
  // unbound.
  if (first_type ? (r.new_key & 0xff) == (window.rkey & 0xff) : window.region != nullptr)
    return false;
  const bool withdraws = r.window_length == 0;
  if (withdraws && !first_type) return false;
  if (!withdraws) {
    if (!knows_region(device, r) || !can_hold(qp, *r.region, r)) return false;
    if (qp.context->behaviour().checks_window_domain && r.region->domain != window.domain)
      return false;
  }
  unbind(window);
  if (!withdraws) {
    window.region = r.region;
    ++r.region->windows;
    window.qp_number = qp.verbs.qp_num;
    window.address = r.window_address;
    window.length = r.window_length;
    window.access = r.window_access;
  }
  // The index of the key stays, whatever key the program passed (measured).
  window.rkey = (window.rkey & ~0xffU) | (r.new_key & 0xffU);
  device.keys.find(window.rkey >> 8)->key = window.rkey;
  return true;
}

bool invalidate(sim_device& device, std::uint32_t rkey, const sim_qp* through) noexcept {
  const key_entry* entry = device.keys.find_key(rkey);
  if (!entry || !entry->mw) return false;
  sim_mw& window = *entry->mw;
  // For an unbound window, Soft-RoCE of Linux 6.1 crashes the machine (measured).
  if (window.verbs.type != IBV_MW_TYPE_2 || !window.region) return false;
  if (through && window.qp_number != through->verbs.qp_num) return false;
  unbind(window);
  return true;
}

}  // namespace ibvxx::shim
