// Work requests and completions as the simulated device keeps them.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/ring.hpp"

namespace ibvxx::shim {

struct record;
struct sim_mr;
struct sim_mw;
struct sim_qp;

/// A request of a send queue. `sges` is borrowed: from the program while the call lasts, from a
/// queued_send afterwards.
struct send_request {
  std::uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = 0;
  std::uint32_t immediate = 0;  // immediate data, or a key to invalidate; as the program gave it
  const ibv_sge* sges = nullptr;
  std::uint32_t sge_count = 0;
  std::uint64_t length = 0;  // of all SGEs
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t compare_or_add = 0;
  std::uint64_t swap = 0;
  std::uint32_t remote_srq = 0;  // XRC
  // datagrams
  ibv_ah_attr address{};
  std::uint32_t remote_qp = 0;
  std::uint32_t remote_qkey = 0;
  // binding a window
  sim_mw* window = nullptr;
  std::uint32_t window_key = 0;  // the window's key according to the program
  std::uint32_t new_key = 0;
  sim_mr* region = nullptr;
  std::uint32_t region_key = 0;
  std::uint64_t window_address = 0;
  std::uint64_t window_length = 0;
  unsigned window_access = 0;
  std::uint32_t rule = 0;  // completion_plan: number of the rule for it; 0: none
};

/// A request that waits in its queue, with copies of its SGEs and inline data.
struct queued_send {
  send_request request{};
  std::vector<ibv_sge> sges{};
  std::vector<std::byte> inline_data{};
};

struct receive_request {
  std::uint64_t wr_id = 0;
  std::vector<ibv_sge> sges{};
  std::vector<std::uint32_t>
      places{};  // of its buffers in sim_device::posted; strict sessions only
};

/// The address behind the last byte of an entry, or behind the last byte of all.
[[nodiscard]] constexpr std::uint64_t end_of(const ibv_sge& one) noexcept {
  return one.addr > UINT64_MAX - one.length ? UINT64_MAX : one.addr + one.length;
}

/// A buffer of a posted receive.
struct posted_buffer {
  const record* queue = nullptr;
  std::uint64_t wr_id = 0;
};

/// A completion in its queue.
struct completion {
  ibv_wc wc{};
  std::uint64_t time = 0;        // number of the call that produced it
  sim_qp* qp = nullptr;          // hardware: the queue pair whose slots polling gives back
  std::uint32_t gives_back = 0;  // hardware: how many
};

}  // namespace ibvxx::shim
