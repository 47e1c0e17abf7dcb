// The operations of real contexts and objects that the shim's operations have replaced.
#pragma once

#include <infiniband/verbs.h>

#include <type_traits>
#include <utility>

namespace ibvxx::shim {

/// Replaces the operations of a real context, through which verbs.h calls many verbs, by `ours`; a
/// slot that is null in either stays unchanged. The replaced operations are kept until the process
/// exits, since the shim's outlast the session that installed them.
void replace_operations(ibv_context& context, const verbs_context& ours);
/// The operations of a real context as they were before.
[[nodiscard]] const verbs_context& original_operations(const ibv_context& context) noexcept;

/// The operations that verbs.h calls through an object itself: an extended CQ or queue pair, a work
/// queue, device memory.
struct object_operations {
  decltype(ibv_cq_ex::start_poll) start_poll = nullptr;
  decltype(ibv_cq_ex::next_poll) next_poll = nullptr;
  decltype(ibv_cq_ex::end_poll) end_poll = nullptr;
  decltype(ibv_qp_ex::wr_start) wr_start = nullptr;
  decltype(ibv_qp_ex::wr_complete) wr_complete = nullptr;
  decltype(ibv_qp_ex::wr_abort) wr_abort = nullptr;
  decltype(ibv_wq::post_recv) post_recv = nullptr;
  decltype(ibv_dm::memcpy_to_dm) memcpy_to_dm = nullptr;
  decltype(ibv_dm::memcpy_from_dm) memcpy_from_dm = nullptr;
};
/// Puts the shim's function in the place of a real one and returns that; an empty slot stays empty.
template <class Function>
Function* replace(Function*& slot, std::type_identity_t<Function>* ours) noexcept {
  return slot ? std::exchange(slot, ours) : nullptr;
}
void remember_operations(const void* object, const object_operations& operations);
/// The operations of a real object as they were before the shim's replaced them.
[[nodiscard]] const object_operations& original_operations(const void* object) noexcept;

}  // namespace ibvxx::shim
