#include "verb_facts.hpp"

#include <cerrno>

namespace ibvxx::shim {
namespace {

// Where from: manual pages of rdma-core 44 and of Linux, and verbs-facts as measured on Soft-RoCE.
// A verb's first errno is the one that order-2 sweeps take.
constexpr int no_memory[] = {ENOMEM};
constexpr int device_list_errnos[] = {ENOSYS, ENOMEM};
constexpr int open_errnos[] = {ENOMEM, EACCES, ENOSYS};
constexpr int query_errnos[] = {EIO, EINVAL};
constexpr int gid_table_errnos[] = {EIO, EOPNOTSUPP};
constexpr int create_errnos[] = {ENOMEM, EINVAL, EIO};
constexpr int channel_errnos[] = {EMFILE, ENOMEM};
constexpr int register_errnos[] = {ENOMEM, EFAULT, EINVAL};
constexpr int destroy_errnos[] = {EBUSY, EIO};
constexpr int device_error[] = {EIO};
constexpr int epoll_create_errnos[] = {EMFILE, ENFILE, ENOMEM};
constexpr int epoll_ctl_errnos[] = {ENOMEM, ENOSPC};
constexpr int fcntl_errnos[] = {EBADF};
constexpr int close_errnos[] = {EIO, EINTR};

}  // namespace

verb_facts facts_of(verb call) noexcept {
  switch (call) {
    case verb::get_device_list:
      return {device_list_errnos, true, false};
    case verb::open_device:
      return {open_errnos, true, false};
    case verb::query_device:
    case verb::query_port:
    case verb::query_gid:
    case verb::query_gid_ex:
    case verb::query_pkey:
      return {query_errnos, true, false};
    case verb::query_gid_table:
      return {gid_table_errnos, true, false};
    case verb::alloc_pd:
      return {no_memory, true, false};
    case verb::reg_mr:
    case verb::reg_mr_iova:
      return {register_errnos, true, false};
    case verb::create_comp_channel:
      return {channel_errnos, true, false};
    case verb::create_cq:
      return {create_errnos, true, false};
    case verb::req_notify_cq:
    case verb::get_cq_event:
    case verb::get_async_event:
      return {device_error, true, false};
    case verb::dealloc_pd:
    case verb::dereg_mr:
    case verb::destroy_comp_channel:
    case verb::destroy_cq:
      return {destroy_errnos, true, true};
    case verb::epoll_create1:
      return {epoll_create_errnos, true, false};
    case verb::epoll_ctl:
      return {epoll_ctl_errnos, true, false};
    case verb::fcntl:
      return {fcntl_errnos, true, false};
    case verb::close:
      return {close_errnos, true, true};
    case verb::allocate:
      return {no_memory, true, false};
    // ibv_free_device_list is void; ibv_close_device returns 0 whatever happens (rdma-core 44).
    case verb::free_device_list:
    case verb::ack_cq_events:
    case verb::ack_async_event:
      return {{}, true, false};
    case verb::close_device:
      return {{}, true, true};
    case verb::poll_cq:
      return {{}, true, false, true};
    default:
      return {{}, false, false};
  }
}

}  // namespace ibvxx::shim
