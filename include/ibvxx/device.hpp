// Devices: the list, opening and closing, and what a device and its ports say of themselves.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/handle.hpp>
#include <ibvxx/hints.hpp>
#include <string_view>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct context_deleter {
  static constexpr verb call = verb::close_device;
  static constexpr ibv_context* empty = nullptr;
  /// ibv_close_device returns 0 in every case, even with live children, whose user half then
  /// dangles (rdma-core 44): destroy the children first.
  [[nodiscard]] static int destroy(ibv_context* context) noexcept {
    return ::ibv_close_device(context);
  }
  [[nodiscard, gnu::cold]] static error explain(ibv_context* context, int code) noexcept {
    // Some providers return -1 and leave the reason in errno.
    return error(call, code == -1 ? errno : code).on(context);
  }
  void operator()(ibv_context* context) const noexcept {
    unique_handle<ibv_context*, context_deleter> destroyed_here(context);
  }
};
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

/// The devices present when it was made. Freeing it invalidates every ibv_device that was not
/// opened meanwhile.
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

/// The devices of this machine. No device at all is a success with an empty list; a kernel without
/// RDMA support is ENOSYS.
[[nodiscard]] inline result<device_list> get_device_list() noexcept {
  int size = 0;
  errno = 0;
  if (ibv_device** list = ibv_get_device_list(&size)) [[likely]]
    return device_list(list, size);
  error e(verb::get_device_list, errno);
  if (e.code() == ENOSYS) detail::explain_no_support(e);
  return failure(e);
}

/// Opens a device. The context does not need the device list any longer.
[[nodiscard]] inline result<unique_context> open_device(ref<ibv_device> device) noexcept {
  if (!device.get()) return impl::null_argument(verb::open_device, "device");
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

/// The device's limits and identity.
[[nodiscard]] inline result<ibv_device_attr> query_device(ref<ibv_context> context) noexcept {
  if (!context.get()) return impl::null_argument(verb::query_device, "context");
  ibv_device_attr attributes{};
  if (auto done = impl::check(verb::query_device, ::ibv_query_device(context.get(), &attributes),
                              context.get());
      !done)
    return failure(done.error());
  return attributes;
}

/// The state of a port; ports count from 1.
[[nodiscard]] inline result<ibv_port_attr> query_port(ref<ibv_context> context, int port) noexcept {
  if (!context.get()) return impl::null_argument(verb::query_port, "context");
  if (port < 1 || port > 255)
    return failure(error(verb::query_port, EINVAL)
                       .on(context.get())
                       .explain("port %d is outside 1..255", port));
  ibv_port_attr attributes{};
  const int code = ibv_query_port(context.get(), static_cast<std::uint8_t>(port), &attributes);
  if (code == 0) [[likely]]
    return attributes;
  return failure(error(verb::query_port, code).on(context.get()).explain("port %d", port));
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
