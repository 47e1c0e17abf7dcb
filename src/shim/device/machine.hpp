// The simulated machine of a session: its devices, registered regions and waiting queue pairs.
#pragma once

#include <infiniband/verbs.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <ibvxx/shim/device.hpp>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/session_state.hpp"
#include "device/device.hpp"
#include "device/interval_index.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

struct sim_context;
struct sim_mr;
struct sim_qp;

/// Guarded by the engine's lock.
struct machine final : simulation {
  /// Throws std::invalid_argument, naming the field, for a description that makes no sense.
  explicit machine(const simulated& described);
  void end(const ledger& objects) noexcept override;
  void drop(const record& object) noexcept override;

  std::vector<std::shared_ptr<sim_device>> devices;
  interval_index<sim_mr*> regions{};       // of the program's memory; live ones
  interval_index<posted_buffer> posted{};  // of receives, in strict sessions
  // Queue pairs whose next request waits, the longest waiting first, and those by what they wait
  // for: device/data_path/send_queue.hpp.
  std::list<sim_qp*> waiting{};
  std::unordered_map<std::uint64_t, std::list<sim_qp*>> waiting_for{};
  std::list<sim_qp*> woken{};              // those of them that are to be tried again
  std::size_t behind_memory = 0;           // how many have sim_qp::is_behind_memory
  bool retrying = false;                   // inside continue_waiting()
  bool registered = false;                 // a region was made: ibv_fork_init fails
  bool fork_ready = false;                 // after ibv_fork_init
  std::condition_variable_any released{};  // notified when an iteration or a batch ends
};

/// The machine of a session that simulates.
[[nodiscard]] inline machine& machine_of(session_state& state) noexcept {
  return static_cast<machine&>(*state.simulated);
}

/// The device of that name, or null.
[[nodiscard]] sim_device* device_called(session_state& state, const std::string& name) noexcept;
/// Unplugs a device: raises DEVICE_FATAL, and every later command fails with EIO.
void remove_device(session_state& state, sim_device& device);

}  // namespace ibvxx::shim
