// What a completion's status means, and where to look: for people and for their logs.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace ibvxx {

/// Whose doing a completion's status is, which decides what to do next.
enum class completion_class : std::uint8_t {
  success,       ///< done
  flushed,       ///< a consequence, never a cause: the queue pair was in ERR already
  unreachable,   ///< no answer: the peer is gone, or the way to it is; reconnect
  not_ready,     ///< the peer had no receive posted: flow control
  access,        ///< keys, ranges and rights: both sides must agree on them
  local_bug,     ///< this side's request or buffer is wrong: posting it again fails again
  remote_bug,    ///< the peer refused or failed: the reason is in its log
  device,        ///< the device or its driver: see the async events and vendor_err
  tag_matching,  ///< of the tag-matching offload only
  obsolete,      ///< of reliable datagrams, which no device on Linux offers
  unknown,       ///< a value that this header does not know
};

/// "success", "flushed", "unreachable", … ; static storage.
[[nodiscard]] constexpr const char* name(completion_class kind) noexcept {
  constexpr const char* names[] = {"success",      "flushed",   "unreachable", "not ready",
                                   "access",       "local bug", "remote bug",  "device",
                                   "tag matching", "obsolete",  "unknown"};
  const auto i = static_cast<std::size_t>(kind);
  return i < std::size(names) ? names[i] : "?";
}

/// A status, in words. All texts have static storage.
struct completion_info {
  ibv_wc_status status;
  completion_class kind;
  const char* name;    ///< the enumerator, as it can be searched for: "IBV_WC_RETRY_EXC_ERR"
  const char* advice;  ///< what to look at, in one line
};

namespace detail {

// In the order of the enumeration. The causes were measured on Soft-RoCE (Linux 6.1) where it can
// produce them; the others follow the InfiniBand specification's chapter on completion errors.
inline constexpr completion_info completion_table[] = {
    {IBV_WC_SUCCESS, completion_class::success, "IBV_WC_SUCCESS", "done"},
    {IBV_WC_LOC_LEN_ERR, completion_class::local_bug, "IBV_WC_LOC_LEN_ERR",
     "a receive buffer is shorter than the message that came, or a send is longer than allowed "
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
     "or for who moved it to ERR"},
    {IBV_WC_MW_BIND_ERR, completion_class::access, "IBV_WC_MW_BIND_ERR",
     "a memory window cannot be bound: MR without MW_BIND, range outside it, or rights it lacks"},
    {IBV_WC_BAD_RESP_ERR, completion_class::remote_bug, "IBV_WC_BAD_RESP_ERR",
     "the answer was no answer to this request: queue pair numbers or PSNs mixed up, or a device "
     "bug"},
    {IBV_WC_LOC_ACCESS_ERR, completion_class::local_bug, "IBV_WC_LOC_ACCESS_ERR",
     "an inbound request could not write to a local buffer: the receive's lkey or its MR's rights"},
    {IBV_WC_REM_INV_REQ_ERR, completion_class::remote_bug, "IBV_WC_REM_INV_REQ_ERR",
     "the peer refused the request: receive buffer too small, operation not in its "
     "qp_access_flags, "
     "misaligned atomic, or more reads at a time than its max_dest_rd_atomic"},
    {IBV_WC_REM_ACCESS_ERR, completion_class::access, "IBV_WC_REM_ACCESS_ERR",
     "the rkey does not cover the remote range: stale or unknown, outside the MR, MR without that "
     "remote access, or of another PD than the peer's queue pair"},
    {IBV_WC_REM_OP_ERR, completion_class::remote_bug, "IBV_WC_REM_OP_ERR",
     "the peer could not carry it out for a reason of its own: look at the peer's completions and "
     "async events"},
    {IBV_WC_RETRY_EXC_ERR, completion_class::unreachable, "IBV_WC_RETRY_EXC_ERR",
     "no acknowledgement after retry_cnt tries: peer gone or its queue pair in ERR, wrong GID, "
     "number or PSN, path MTU, loss or a firewall on the way"},
    {IBV_WC_RNR_RETRY_EXC_ERR, completion_class::not_ready, "IBV_WC_RNR_RETRY_EXC_ERR",
     "the peer had no receive posted through rnr_retry tries: post receives earlier, use credits, "
     "or rnr_retry 7 to try for ever"},
    {IBV_WC_LOC_RDD_VIOL_ERR, completion_class::obsolete, "IBV_WC_LOC_RDD_VIOL_ERR",
     "reliable datagrams only: suspect corrupted memory or a driver bug"},
    {IBV_WC_REM_INV_RD_REQ_ERR, completion_class::obsolete, "IBV_WC_REM_INV_RD_REQ_ERR",
     "reliable datagrams only: suspect corrupted memory or a driver bug"},
    {IBV_WC_REM_ABORT_ERR, completion_class::remote_bug, "IBV_WC_REM_ABORT_ERR",
     "the peer broke the operation off: look at its completions and async events"},
    {IBV_WC_INV_EECN_ERR, completion_class::obsolete, "IBV_WC_INV_EECN_ERR",
     "reliable datagrams only: suspect corrupted memory or a driver bug"},
    {IBV_WC_INV_EEC_STATE_ERR, completion_class::obsolete, "IBV_WC_INV_EEC_STATE_ERR",
     "reliable datagrams only: suspect corrupted memory or a driver bug"},
    {IBV_WC_FATAL_ERR, completion_class::device, "IBV_WC_FATAL_ERR",
     "the device or its driver is in a fatal state: expect IBV_EVENT_DEVICE_FATAL, then open it "
     "anew"},
    {IBV_WC_RESP_TIMEOUT_ERR, completion_class::unreachable, "IBV_WC_RESP_TIMEOUT_ERR",
     "the answer did not come in time: peer gone or overloaded"},
    {IBV_WC_GENERAL_ERR, completion_class::device, "IBV_WC_GENERAL_ERR",
     "an error that the driver does not map to any other: vendor_err and the kernel log say more"},
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

/// The status in words. Where it is newer than this header, the entry's kind is `unknown` and its
/// `status` means nothing.
[[nodiscard]] constexpr const completion_info& describe(ibv_wc_status status) noexcept {
  const auto i = static_cast<std::size_t>(status);
  return i < std::size(detail::completion_table) ? detail::completion_table[i]
                                                 : detail::unknown_completion;
}

[[nodiscard]] constexpr completion_class classify(ibv_wc_status status) noexcept {
  return describe(status).kind;
}

/// The enumerator: "IBV_WC_RETRY_EXC_ERR"; "unknown status" for a value newer than this header.
[[nodiscard]] constexpr const char* wc_status_name(ibv_wc_status status) noexcept {
  return describe(status).name;
}

/// False for a success and for IBV_WC_TM_RNDV_INCOMPLETE, which asks software to go on.
[[nodiscard]] constexpr bool is_failure(ibv_wc_status status) noexcept {
  return status != IBV_WC_SUCCESS && status != IBV_WC_TM_RNDV_INCOMPLETE;
}

/// The first completion that tells why: the first failure that is not a flush, or nullptr.
/// `completions` is what one poll or several returned, in that order; of a completion with an error
/// status only wr_id, status, qp_num and vendor_err mean anything. Flushes alone mean that someone
/// moved the queue pair to ERR, or that the cause completed on another queue or earlier.
[[nodiscard]] constexpr const ibv_wc* first_cause(std::span<const ibv_wc> completions) noexcept {
  for (const ibv_wc& completion : completions)
    if (is_failure(completion.status) && classify(completion.status) != completion_class::flushed)
      return &completion;
  return nullptr;
}

}  // namespace ibvxx
