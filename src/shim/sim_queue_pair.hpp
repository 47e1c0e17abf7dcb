// Simulated queue pairs, and the receive queues that they share.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "sim_objects.hpp"
#include "sim_work.hpp"

namespace ibvxx::shim {

struct sim_srq {
  static constexpr object_kind kind = object_kind::srq;
  ibv_srq verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  ibv_srq_type type = IBV_SRQT_BASIC;
  ibv_srq_attr attr{};           // max_wr: the real capacity
  std::uint32_t number = 0;      // for XRC and tag matching
  const void* domain = nullptr;  // sim_pd::domain
  const void* xrc_domain = nullptr;
  sim_cq* cq = nullptr;    // for XRC and tag matching
  std::uint32_t tags = 0;  // handed out by post_srq_ops
  ring<receive_request> receives{};
  const void* thread_scope = nullptr;  // sim_pd::thread_scope
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
  const void* thread_scope = nullptr;  // sim_pd::thread_scope
  sim_qp* original = this;             // of one that ibv_open_qp gave: the queue pair itself
  unsigned users = 1;                  // handles of the queue pair itself
  std::vector<ibv_gid> groups{};       // multicast groups whose datagrams it gets

  ring<queued_send> sends{};  // those that could not be carried out at once
  ring<receive_request> receives{};
  bool waiting = false;            // the first of `sends` waits for somebody else
  bool first_is_running = false;   // the first of `sends` is being carried out
  bool established = false;        // hardware: a message came in since RTR
  std::uint32_t unreclaimed = 0;   // hardware: slots taken since the last completion
  std::uint32_t slots_in_use = 0;  // hardware: slots that no polled completion gave back
  std::size_t peer_hint[3] = {};   // device, port and GID index where the peer was found last

  // ibv_wr_*: the batch between wr_start and its end
  std::vector<queued_send> batch{};
  std::size_t batch_size = 0;
  std::size_t batch_room = 0;
  int batch_error = 0;
  bool batch_open = false;
  std::thread::id batch_owner{};

  /// The state as the device has it; verbs.state is what libibverbs was told last.
  [[nodiscard]] ibv_qp_state state() const noexcept { return attr.qp_state; }
};

/// One membership in the kernel's list (drivers/infiniband/core/uverbs_cmd.c), by GID and LID.
/// Also in front of a real kernel.
struct sim_multicast {
  static constexpr object_kind kind = object_kind::multicast_membership;
  ibv_qp* qp = nullptr;
  ibv_gid gid{};
  std::uint16_t lid = 0;
};

/// The checks of an address that both queue pairs and address handles get: 0 or the errno.
[[nodiscard]] int check_address(const sim_context& context, const ibv_ah_attr& address) noexcept;

/// What the functions do that post to an extended queue pair, for the kinds of request asked for.
void install_wr_api(sim_qp& qp, std::uint64_t operations) noexcept;

}  // namespace ibvxx::shim
