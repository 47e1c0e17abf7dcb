// The meaning of a completion's status and advice on its cause, for people and logs.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace ibvxx {

/// The cause of a completion's status, as far as it decides what to do next.
enum class completion_class : std::uint8_t {
  success,       ///< done
  flushed,       ///< a consequence, never a cause: the queue pair was already in ERR
  unreachable,   ///< no response: the peer or the path to it is down; reconnect
  not_ready,     ///< the peer had no receive posted: flow control
  access,        ///< a key, range or access right does not match between the sides
  local_bug,     ///< this side's request or buffer is wrong; posting it again fails again
  remote_bug,    ///< the peer refused the request or failed; see its log
  device,        ///< the device or its driver: see the async events and vendor_err
  tag_matching,  ///< only with the tag-matching offload
  obsolete,      ///< only with reliable datagrams, which no device on Linux offers
  unknown,       ///< a value newer than this header
};

/// "success", "flushed", "unreachable", … ; static storage.
[[nodiscard]] constexpr const char* name(completion_class kind) noexcept {
  constexpr const char* names[] = {"success",      "flushed",   "unreachable", "not ready",
                                   "access",       "local bug", "remote bug",  "device",
                                   "tag matching", "obsolete",  "unknown"};
  const auto i = static_cast<std::size_t>(kind);
  return i < std::size(names) ? names[i] : "?";
}

/// The description of a status. All texts have static storage.
struct completion_info {
  ibv_wc_status status;
  completion_class kind;
  const char* name;    ///< the name of the enumerator: "IBV_WC_RETRY_EXC_ERR"
  const char* advice;  ///< what to check, in one line
};

namespace detail {

// In the order of the enumeration. The causes were measured on Soft-RoCE (Linux 6.1) for each
// status that it can produce; the others follow the InfiniBand specification's chapter on
// completion errors.
inline constexpr completion_info completion_table[] = {
    {IBV_WC_SUCCESS, completion_class::success, "IBV_WC_SUCCESS", "done"},
    {IBV_WC_LOC_LEN_ERR, completion_class::local_bug, "IBV_WC_LOC_LEN_ERR",
     "a receive buffer is shorter than the received message, or a send is longer than allowed "
     "(UD: the path MTU)"},
    {IBV_WC_LOC_QP_OP_ERR, completion_class::local_bug, "IBV_WC_LOC_QP_OP_ERR",
     "the work request does not fit its queue pair: operation, flags or SGE list; Soft-RoCE: also "
     "an unknown lkey"},
    {IBV_WC_LOC_EEC_OP_ERR, completion_class::obsolete, "IBV_WC_LOC_EEC_OP_ERR",
     "reliable datagrams only: suspect corrupted memory or a driver bug"},
    {IBV_WC_LOC_PROT_ERR, completion_class::local_bug, "IBV_WC_LOC_PROT_ERR",
     "an lkey does not cover its buffer: deregistered, out of range, of another PD, or without "
     "LOCAL_WRITE where the device writes"},
    {IBV_WC_WR_FLUSH_ERR, completion_class::flushed, "IBV_WC_WR_FLUSH_ERR",
     "the queue pair was in ERR already: look for its first failed completion that is not a flush, "
     "or for what moved it to ERR"},
    {IBV_WC_MW_BIND_ERR, completion_class::access, "IBV_WC_MW_BIND_ERR",
     "a memory window cannot be bound: MR without MW_BIND, range outside it, or rights it lacks"},
    {IBV_WC_BAD_RESP_ERR, completion_class::remote_bug, "IBV_WC_BAD_RESP_ERR",
     "the response does not match the request: queue pair numbers or PSNs mixed up, or a device "
     "bug"},
    {IBV_WC_LOC_ACCESS_ERR, completion_class::local_bug, "IBV_WC_LOC_ACCESS_ERR",
     "an inbound request could not write to a local buffer: the receive's lkey or its MR's rights"},
    {IBV_WC_REM_INV_REQ_ERR, completion_class::remote_bug, "IBV_WC_REM_INV_REQ_ERR",
     "the peer refused the request: receive buffer too small, operation not in its "
     "qp_access_flags, "
     "misaligned atomic, or more concurrent reads than its max_dest_rd_atomic"},
    {IBV_WC_REM_ACCESS_ERR, completion_class::access, "IBV_WC_REM_ACCESS_ERR",
     "the rkey does not cover the remote range: stale or unknown, outside the MR, MR without that "
     "remote access, or of another PD than the peer's queue pair"},
    {IBV_WC_REM_OP_ERR, completion_class::remote_bug, "IBV_WC_REM_OP_ERR",
     "the peer failed to execute the request, for a local reason: check the peer's completions and "
     "async events"},
    {IBV_WC_RETRY_EXC_ERR, completion_class::unreachable, "IBV_WC_RETRY_EXC_ERR",
     "no acknowledgement after retry_cnt tries: peer down or its queue pair in ERR, wrong GID, "
     "number or PSN, path MTU, packet loss or a firewall on the path"},
    {IBV_WC_RNR_RETRY_EXC_ERR, completion_class::not_ready, "IBV_WC_RNR_RETRY_EXC_ERR",
     "the peer had no receive posted through rnr_retry tries: post receives earlier, use credits, "
     "or set rnr_retry to 7: no limit"},
    {IBV_WC_LOC_RDD_VIOL_ERR, completion_class::obsolete, "IBV_WC_LOC_RDD_VIOL_ERR",
     "reliable datagrams only: suspect corrupted memory or a driver bug"},
    {IBV_WC_REM_INV_RD_REQ_ERR, completion_class::obsolete, "IBV_WC_REM_INV_RD_REQ_ERR",
     "reliable datagrams only: suspect corrupted memory or a driver bug"},
    {IBV_WC_REM_ABORT_ERR, completion_class::remote_bug, "IBV_WC_REM_ABORT_ERR",
     "the peer aborted the operation: check its completions and async events"},
    {IBV_WC_INV_EECN_ERR, completion_class::obsolete, "IBV_WC_INV_EECN_ERR",
     "reliable datagrams only: suspect corrupted memory or a driver bug"},
    {IBV_WC_INV_EEC_STATE_ERR, completion_class::obsolete, "IBV_WC_INV_EEC_STATE_ERR",
     "reliable datagrams only: suspect corrupted memory or a driver bug"},
    {IBV_WC_FATAL_ERR, completion_class::device, "IBV_WC_FATAL_ERR",
     "the device or its driver is in a fatal state: expect IBV_EVENT_DEVICE_FATAL, then reopen it"},
    {IBV_WC_RESP_TIMEOUT_ERR, completion_class::unreachable, "IBV_WC_RESP_TIMEOUT_ERR",
     "no response in time: peer down or overloaded"},
    {IBV_WC_GENERAL_ERR, completion_class::device, "IBV_WC_GENERAL_ERR",
     "an error that the driver maps to no other status: see vendor_err and the kernel log"},
    {IBV_WC_TM_ERR, completion_class::tag_matching, "IBV_WC_TM_ERR",
     "a tag-matching operation failed: list full, or out of step with the messages that software "
     "handled"},
    {IBV_WC_TM_RNDV_INCOMPLETE, completion_class::tag_matching, "IBV_WC_TM_RNDV_INCOMPLETE",
     "no failure: the tag matched, and software must finish the rendezvous from the headers in the "
     "buffer"},
};

[[nodiscard]] constexpr bool completion_table_is_ordered() noexcept {
  for (std::size_t i = 0; i < std::size(completion_table); ++i)
    if (static_cast<std::size_t>(completion_table[i].status) != i) return false;
  return true;
}
static_assert(completion_table_is_ordered());

inline constexpr completion_info unknown_completion = {
    IBV_WC_GENERAL_ERR, completion_class::unknown, "unknown status",
    "this status is newer than ibvxx: see verbs.h"};

}  // namespace detail

/// The description of a status. For a status newer than this header `kind` is `unknown` and
/// `status` has no meaning.
[[nodiscard]] constexpr const completion_info& describe(ibv_wc_status status) noexcept {
  const auto i = static_cast<std::size_t>(status);
  return i < std::size(detail::completion_table) ? detail::completion_table[i]
                                                 : detail::unknown_completion;
}

/// The class of a status.
[[nodiscard]] constexpr completion_class classify(ibv_wc_status status) noexcept {
  return describe(status).kind;
}

/// The enumerator: "IBV_WC_RETRY_EXC_ERR"; "unknown status" for a value newer than this header.
[[nodiscard]] constexpr const char* wc_status_name(ibv_wc_status status) noexcept {
  return describe(status).name;
}

/// False for a success and for IBV_WC_TM_RNDV_INCOMPLETE, after which software must finish the
/// operation.
[[nodiscard]] constexpr bool is_failure(ibv_wc_status status) noexcept {
  return status != IBV_WC_SUCCESS && status != IBV_WC_TM_RNDV_INCOMPLETE;
}

/// The completion that explains a failure: the first that failed and is not a flush, or nullptr.
/// `completions` holds the results of one poll or several, in order. In a completion with an error
/// status only wr_id, status, qp_num and vendor_err are valid. If all failures are flushes, the
/// program moved the queue pair to ERR, or the cause completed earlier or on another queue.
[[nodiscard]] constexpr const ibv_wc* first_cause(std::span<const ibv_wc> completions) noexcept {
  for (const ibv_wc& completion : completions)
    if (is_failure(completion.status) && classify(completion.status) != completion_class::flushed)
      return &completion;
  return nullptr;
}

}  // namespace ibvxx
