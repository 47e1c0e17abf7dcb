// Real verbs of which a session records more than the object that they make or end: events read and
// acknowledged, multicast memberships, the protection domain of a region. And those whose real
// operation is called in a way of its own.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "core/call.hpp"

namespace ibvxx::shim::real {

ibv_device** get_device_list(call& c, int* num_devices);
ibv_context* open_device(call& c, ibv_device* device);
int get_cq_event(call& c, ibv_comp_channel* channel, ibv_cq** cq, void** cq_context);
void ack_cq_events(call& c, ibv_cq* cq, unsigned events);
int get_async_event(call& c, ibv_context* context, ibv_async_event* event);
void ack_async_event(call& c, ibv_async_event* event);
int attach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);
int detach_mcast(call& c, ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);
int rereg_mr(call& c, ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length,
             int access);

int memcpy_from_dm(call& c, void* host, ibv_dm* dm, std::uint64_t offset, std::size_t length);
int wr_complete(call& c, ibv_qp_ex* handle);

/// Events of an object that the program has read and not acknowledged: libibverbs' destroy would
/// wait for them.
struct missing_acks {
  void* handle = nullptr;
  object_kind kind{};
  unsigned completion_events = 0;
  unsigned async_events = 0;
};
/// Takes them from the record, which counts them as acknowledged. Needs the lock.
[[nodiscard]] missing_acks take_missing_acks(record& object) noexcept;
/// Makes the acknowledgements, so that the destroy returns. Without the lock: they are real calls.
void acknowledge(const missing_acks& missing);

}  // namespace ibvxx::shim::real
