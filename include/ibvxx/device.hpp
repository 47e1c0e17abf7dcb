// Devices: listing, opening and closing them, querying them and their ports.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/checks.hpp>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/fd.hpp>
#include <ibvxx/handle.hpp>
#include <string_view>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct context_deleter {
  static constexpr verb call = verb::close_device;
  static constexpr ibv_context* empty = nullptr;
  /// ibv_close_device returns 0 in every case, even if objects of the context are alive, which then
  /// have dangling pointers (rdma-core 44): destroy those first.
  [[nodiscard]] static int destroy(ibv_context* context) noexcept {
    return ::ibv_close_device(context);
  }
  [[nodiscard, gnu::cold]] static error explain(ibv_context* context, int code) noexcept {
    // Some providers return -1 and set errno.
    return error(call, code == -1 ? errno : code).on(context);
  }
  void operator()(ibv_context* context) const noexcept {
    unique_handle<ibv_context*, context_deleter> destroyed_here(context);
  }
};
/// An open device. Destroy every object created from it first: see context_deleter.
using unique_context = unique_handle<ibv_context*, context_deleter>;

struct device_list_deleter {
  static constexpr verb call = verb::free_device_list;
  static constexpr ibv_device** empty = nullptr;
  [[nodiscard]] static int destroy(ibv_device** list) noexcept {
    ::ibv_free_device_list(list);
    return 0;
  }
  [[nodiscard, gnu::cold]] static error explain(ibv_device**, int code) noexcept {
    return {call, code};
  }
};

/// The devices that were present when the list was made. Freeing it invalidates every ibv_device
/// that is not open.
class [[nodiscard]] device_list {
 public:
  device_list() noexcept = default;
  /// Adopts what ibv_get_device_list returned.
  explicit device_list(ibv_device** list, int size) noexcept
      : list_(list), size_(size < 0 ? 0 : static_cast<std::size_t>(size)) {}
  device_list(device_list&& other) noexcept
      : list_(std::move(other.list_)), size_(std::exchange(other.size_, 0)) {}
  device_list& operator=(device_list&& other) noexcept {
    list_ = std::move(other.list_);
    size_ = list_ ? (this == &other ? size_ : std::exchange(other.size_, 0)) : 0;
    return *this;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] ibv_device* operator[](std::size_t i) const noexcept { return list_.get()[i]; }
  [[nodiscard]] ibv_device* const* begin() const noexcept { return list_.get(); }
  [[nodiscard]] ibv_device* const* end() const noexcept { return list_.get() + size_; }

  /// The device of exactly that name, or nullptr.
  [[nodiscard]] ibv_device* find(std::string_view device_name) const noexcept {
    for (ibv_device* device : *this)
      if (device_name == device->name) return device;
    return nullptr;
  }

 private:
  unique_handle<ibv_device**, device_list_deleter> list_;
  std::size_t size_ = 0;
};

/// The devices of this machine. A machine without a device gives an empty list; a kernel without
/// RDMA support gives ENOSYS.
[[nodiscard]] inline result<device_list> get_device_list() noexcept {
  int size = 0;
  errno = 0;
  if (ibv_device** list = ibv_get_device_list(&size)) [[likely]]
    return device_list(list, size);
  error e(verb::get_device_list, errno);
  if (e.code() == ENOSYS) detail::explain_no_support(e);
  return failure(e);
}

/// Opens a device. The context does not need the device list any longer. The error names a missing
/// permission, missing kernel support, or the descriptor limit.
[[nodiscard]] inline result<unique_context> open_device(ref<ibv_device> device) noexcept {
  if (!device.get()) return detail::null_argument(verb::open_device, "device");
  errno = 0;
  if (unique_context context{::ibv_open_device(device.get())}) [[likely]]
    return context;
  error e(verb::open_device, errno);
  e.on(device->name);
  detail::explain_permission(e, device->dev_name);
  if (e.code() == ENOSYS) detail::explain_no_support(e);
  if (e.code() == EMFILE) detail::explain_descriptor_limit(e);
  return failure(e);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// True if two descriptors refer to one open file. kcmp(2) decides exactly; if it is not available
/// (no CONFIG_KCMP, a seccomp filter), descriptors of one device node count as one.
[[nodiscard, gnu::cold]] inline bool same_open_file(int a, int b) noexcept {
  constexpr int kcmp_file = 0;
  const long compared = ::syscall(SYS_kcmp, ::getpid(), ::getpid(), kcmp_file, a, b);
  if (compared >= 0) return compared == 0;
  struct stat of_a, of_b;
  return errno != EBADF && ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Imports a context that is open elsewhere, perhaps in another process: `cmd_fd` is that context's
/// cmd_fd, or the descriptor received for it with SCM_RIGHTS. The descriptor stays the caller's in
/// every case: the new context uses a duplicate. (ibv_import_device itself takes the descriptor,
/// and after a failure has closed it or not, depending on the step that failed; rdma-core 44 to
/// 64.) Objects are then imported by their handles: import_pd, import_mr, import_dm. Errors: EINVAL
/// for a descriptor that is not a device file, ENODEV, EOPNOTSUPP (of the providers in rdma-core
/// only mlx5 supports it).
[[nodiscard]] inline result<unique_context> import_device(int cmd_fd) noexcept {
  if (cmd_fd < 0)
    return failure(error(verb::import_device, EINVAL).explain("cmd_fd %d is negative", cmd_fd));
  unique_fd duplicate(::fcntl(cmd_fd, F_DUPFD_CLOEXEC, 0));
  if (!duplicate) {
    error e(verb::fcntl, errno);
    e.explain("duplicating cmd_fd %d", cmd_fd);
    if (e.code() == EMFILE) detail::explain_descriptor_limit(e);
    return failure(e);
  }
  errno = 0;
  if (unique_context context{::ibv_import_device(duplicate.get())}) [[likely]] {
    static_cast<void>(duplicate.release());  // closed with the context
    return context;
  }
  error e(verb::import_device, errno);
  e.explain("cmd_fd %d", cmd_fd);
  if (!detail::same_open_file(cmd_fd, duplicate.get())) static_cast<void>(duplicate.release());
  return failure(e);
}

/// The device's node GUID, in network byte order. 0 if it cannot be read.
[[nodiscard]] inline result<__be64> get_device_guid(ref<ibv_device> device) noexcept {
  if (!device.get()) return detail::null_argument(verb::get_device_guid, "device");
  return ::ibv_get_device_guid(device.get());
}

/// The kernel's index of the device, which is constant while the device exists. EOPNOTSUPP from a
/// kernel without device indices.
[[nodiscard]] inline result<int> get_device_index(ref<ibv_device> device) noexcept {
  if (!device.get()) return detail::null_argument(verb::get_device_index, "device");
  const int index = ::ibv_get_device_index(device.get());
  if (index >= 0) [[likely]]
    return index;
  return failure(error(verb::get_device_index, EOPNOTSUPP).on(device->name));
}

/// The device's limits and identity.
[[nodiscard]] inline result<ibv_device_attr> query_device(ref<ibv_context> context) noexcept {
  if (!context.get()) return detail::null_argument(verb::query_device, "context");
  ibv_device_attr attributes{};
  if (auto done = detail::check(verb::query_device, ::ibv_query_device(context.get(), &attributes),
                                context.get());
      !done)
    return failure(done.error());
  return attributes;
}

/// The same with the extended capabilities. Fields that the provider does not set are zero; a
/// provider without the extended call sets `orig_attr` only (verbs.h falls back by itself).
[[nodiscard]] inline result<ibv_device_attr_ex> query_device_ex(ref<ibv_context> context) noexcept {
  if (!context.get()) return detail::null_argument(verb::query_device_ex, "context");
  ibv_device_attr_ex attributes{};
  const int code = ::ibv_query_device_ex(context.get(), nullptr, &attributes);
  if (code == 0) [[likely]]
    return attributes;
  return failure(error(verb::query_device_ex, code).on(context.get()));
}

/// Real-time values of the device: `mask` is a set of ibv_values_mask. comp_mask in the result has
/// those that the provider set. EOPNOTSUPP from most providers.
[[nodiscard]] inline result<ibv_values_ex> query_rt_values_ex(
    ref<ibv_context> context, std::uint32_t mask = IBV_VALUES_MASK_RAW_CLOCK) noexcept {
  if (!context.get()) return detail::null_argument(verb::query_rt_values_ex, "context");
  ibv_values_ex values{};
  values.comp_mask = mask;
  const int code = ::ibv_query_rt_values_ex(context.get(), &values);
  if (code == 0) [[likely]]
    return values;
  return failure(
      error(verb::query_rt_values_ex, code).on(context.get()).explain("mask 0x%x", mask));
}

/// The attributes of a port; ports count from 1.
[[nodiscard]] inline result<ibv_port_attr> query_port(ref<ibv_context> context, int port) noexcept {
  if (!context.get()) return detail::null_argument(verb::query_port, "context");
  if (auto valid = detail::check_port(verb::query_port, context.get(), port); !valid)
    return failure(valid.error());
  ibv_port_attr attributes{};
  const int code = ibv_query_port(context.get(), static_cast<std::uint8_t>(port), &attributes);
  if (code == 0) [[likely]]
    return attributes;
  return failure(error(verb::query_port, code).on(context.get()).explain("port %d", port));
}

/// The P_Key at `index` of a port's table, in network byte order. ENOENT if the index is outside
/// the table.
[[nodiscard]] inline result<__be16> query_pkey(ref<ibv_context> context, int port,
                                               int index) noexcept {
  if (!context.get()) return detail::null_argument(verb::query_pkey, "context");
  if (auto valid = detail::check_port(verb::query_pkey, context.get(), port); !valid)
    return failure(valid.error());
  if (index < 0)
    return failure(
        detail::refusal(verb::query_pkey, context.get()).explain("index %d is negative", index));
  __be16 pkey = 0;
  errno = 0;
  if (::ibv_query_pkey(context.get(), static_cast<std::uint8_t>(port), index, &pkey) == 0)
      [[likely]]
    return pkey;
  return failure(
      error(verb::query_pkey, errno).on(context.get()).explain("port %d, index %d", port, index));
}

/// The index of `pkey`, in network byte order and with its membership bit, in a port's table.
/// ENOENT if it is not there: the whole table is searched, with one file read for each entry.
[[nodiscard]] inline result<int> get_pkey_index(ref<ibv_context> context, int port,
                                                __be16 pkey) noexcept {
  if (!context.get()) return detail::null_argument(verb::get_pkey_index, "context");
  if (auto valid = detail::check_port(verb::get_pkey_index, context.get(), port); !valid)
    return failure(valid.error());
  errno = 0;
  const int index = ::ibv_get_pkey_index(context.get(), static_cast<std::uint8_t>(port), pkey);
  if (index >= 0) [[likely]]
    return index;
  return failure(error(verb::get_pkey_index, errno)
                     .on(context.get())
                     .explain("port %d, P_Key 0x%04x", port, static_cast<unsigned>(be16toh(pkey))));
}

/// Makes registered memory safe across fork(). Call it before any registration: EINVAL afterwards.
/// Not needed if `is_fork_initialized()` is IBV_FORK_UNNEEDED. Not thread-safe; in effect until the
/// process ends.
[[nodiscard]] inline result<void> fork_init() noexcept {
  auto done = detail::check(verb::fork_init, ::ibv_fork_init(), nullptr);
  if (!done && done.error().code() == EINVAL)
    done.error().explain("memory was registered already: fork() is not safe any more");
  return done;
}

/// IBV_FORK_UNNEEDED if the kernel copies registered pages on fork by itself.
[[nodiscard]] inline ibv_fork_status is_fork_initialized() noexcept {
  return ::ibv_is_fork_initialized();
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
