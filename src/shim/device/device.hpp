// A simulated device: its description, its live counts, and its tables of keys and numbers.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/shim/ledger.hpp>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "device/interval_index.hpp"
#include "device/key_table.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

/// libibverbs' inline helpers read beyond some public structures, into fields private to it. These
/// zeroes take the place of those fields.
struct abi_padding {
  std::byte zeroes[512] = {};
};

/// A GID as a key.
using gid_key = std::pair<std::uint64_t, std::uint64_t>;
[[nodiscard]] inline gid_key key_of(const ibv_gid& gid) noexcept {
  return {gid.global.subnet_prefix, gid.global.interface_id};
}

struct gid_hash {
  [[nodiscard]] std::size_t operator()(const gid_key& key) const noexcept {
    return static_cast<std::size_t>((key.first * 0x9e3779b97f4a7c15) ^ key.second);
  }
};
template <class Value>
using gid_map = std::unordered_map<gid_key, Value, gid_hash>;

struct sim_device {
  ibv_device verbs{};
  abi_padding padding{};
  device_description described{};
  std::array<unsigned, object_kind_count> live_counts{};  // by kind, for the limits
  key_table keys{};                                       // of regions and windows
  qp_table qps{};
  srq_table srqs{};
  gid_map<std::list<sim_qp*>> multicast_groups{};   // and their members
  interval_index<posted_buffer>* posted = nullptr;  // the machine's
  std::uint64_t dm_in_use = 0;                      // bytes of device memory
  bool lost = false;                                ///< unplugged

  [[nodiscard]] const device_behaviour& behaviour() const noexcept { return described.behaviour; }
};

/// A device as described, the `place`-th of its machine. Throws std::invalid_argument, naming the
/// field, for a description that makes no sense.
[[nodiscard]] std::shared_ptr<sim_device> make_device(const device_description& described,
                                                      std::size_t place);

/// A port's description by its number, or null.
[[nodiscard]] const port_description* find_port(const sim_device& device,
                                                std::uint32_t port) noexcept;
/// Fills in an entry of a GID table; false for an empty slot.
[[nodiscard]] bool fill_gid_entry(const port_description& port, std::uint32_t number,
                                  std::uint32_t index, ibv_gid_entry& out) noexcept;
/// Whether the device holds as many objects of a kind as it can.
[[nodiscard]] bool is_full(const sim_device& device, object_kind kind, int limit) noexcept;

}  // namespace ibvxx::shim
