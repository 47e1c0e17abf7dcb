// Queue pairs.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <thread>
#include <vector>

#include "core/call.hpp"
#include "device/context.hpp"
#include "device/data_path/route.hpp"
#include "device/request_queue.hpp"
#include "device/work.hpp"

namespace ibvxx::shim {

struct sim_cq;
struct sim_srq;

/// A queue pair's place among those that wait for the same.
struct wait_place {
  std::uint64_t key = 0;  // 0: none
  std::list<sim_qp*>::iterator place{};
};

struct sim_qp {
  static constexpr object_kind kind = object_kind::qp;

  sim_qp() = default;
  sim_qp(const sim_qp&) = delete;
  sim_qp& operator=(const sim_qp&) = delete;

  ibv_qp_ex extended{};
  abi_padding padding{};
  ibv_qp& verbs = extended.qp_base;
  sim_context* context = nullptr;
  const void* domain = nullptr;  // sim_pd::domain; null for an XRC receiver
  const void* xrc_domain = nullptr;
  sim_cq* send_cq = nullptr;
  sim_cq* recv_cq = nullptr;
  sim_srq* srq = nullptr;
  bool is_extended = false;
  bool signal_all = false;
  ibv_qp_cap cap{};  // real capacities
  ibv_qp_attr attr{};
  ibv_ece ece{};
  sim_qp* original = this;  // the queue pair itself, for a handle from ibv_open_qp
  unsigned users = 1;       // handles of the queue pair itself
  gid_map<std::list<sim_qp*>::iterator> groups{};  // that it has joined; its place there

  request_queue<queued_send> sends{};  // those that could not be carried out at once
  request_queue<receive_request> receives{};
  bool waiting = false;  // the first of `sends` waits; the queue pair is in machine::waiting
  std::list<sim_qp*>::iterator place_waiting{};
  std::array<wait_place, 2> waits_for{};  // in machine::waiting_for
  bool woken = false;                     // the queue pair is in machine::woken
  std::list<sim_qp*>::iterator place_woken{};
  std::uint64_t awaited = 0;         // key of the shared queue that lacks a receive; 0: none does
  bool waits_behind_memory = false;  // its rkey is checked before the receive that it waits for
  bool is_behind_memory = false;     // and it is counted in machine::behind_memory
  bool first_is_running = false;     // the first of `sends` is being carried out
  bool established = false;          // a message arrived since RTR
  std::uint32_t unreclaimed = 0;     // send slots taken since the last completion
  std::uint32_t slots_in_use = 0;    // send slots that no polled completion has freed
  route_hint peer_hint{};            // where the peer was found last

  // ibv_wr_*: the batch between wr_start and its end
  std::vector<queued_send> batch{};
  std::size_t batch_size = 0;
  std::size_t batch_room = 0;
  int batch_error = 0;
  bool batch_open = false;
  std::thread::id batch_owner{};

  /// The state as the device has it; verbs.state is what the last modify or query of this handle
  /// set.
  [[nodiscard]] ibv_qp_state state() const noexcept { return attr.qp_state; }
};

/// Bytes of a full packet on a queue pair's path.
[[nodiscard]] inline std::uint64_t path_mtu(const sim_qp& qp) noexcept {
  return std::uint64_t{128} << qp.attr.path_mtu;
}

/// The last handle of a queue pair is destroyed: discards its requests and frees its number.
void end_queue_pair(session_state& state, sim_qp& qp) noexcept;

namespace device {

ibv_qp* create_qp(call& c, ibv_pd* pd, ibv_qp_init_attr* attributes);
/// The functions of an extended queue pair that take part in interception (ibv_wr_start and the
/// like) are null: intercept/ sets them.
ibv_qp* create_qp_ex(call& c, ibv_context* context, ibv_qp_init_attr_ex* a);
ibv_qp* open_qp(call& c, ibv_context* context, ibv_qp_open_attr* attributes);
int destroy_qp(call& c, ibv_qp* qp);
ibv_qp_ex* qp_to_qp_ex(call& c, ibv_qp* qp);

}  // namespace device

}  // namespace ibvxx::shim
