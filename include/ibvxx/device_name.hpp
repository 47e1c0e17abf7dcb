// The usual notation for a device and a port, and a listing of the devices.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ibvxx/device.hpp>
#include <ibvxx/gid.hpp>
#include <ibvxx/qp_address.hpp>
#include <ibvxx/text.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// A device name has at most 63 characters (the kernel's limit).
using device_name_text = fixed_text<IBV_SYSFS_NAME_MAX - 1>;

/// A device and, optionally, one of its ports, in the usual notation: "mlx5_0" or "mlx5_0:1".
struct device_port {
  device_name_text device{};
  int port = 0;  ///< 1..255; 0: no port

  /// Reads the notation. The name is 1 to 63 printable ASCII characters without space, slash or
  /// colon; the port, after a colon, 1..255 in decimal without sign or leading zero. It is not
  /// checked that such a device exists. EINVAL naming the part and its limit.
  [[nodiscard]] static result<device_port> parse(std::string_view text) noexcept;

  /// The notation, without the port if it is 0.
  [[nodiscard]] fixed_text<IBV_SYSFS_NAME_MAX + 16> text() const noexcept {
    fixed_text<IBV_SYSFS_NAME_MAX + 16> out(device.view());
    if (port != 0) out.print(":%d", port);
    return out;
  }

  friend bool operator==(const device_port&, const device_port&) noexcept = default;
};

inline result<device_port> device_port::parse(std::string_view text) noexcept {
  error e(verb::none, EINVAL);
  const std::size_t colon = text.find(':');
  const std::string_view device = text.substr(0, colon);
  constexpr std::size_t longest = IBV_SYSFS_NAME_MAX - 1;
  if (device.empty()) return failure(e.explain("the device name is empty"));
  if (device.size() > longest)
    return failure(e.explain("the device name '%s' has %zu characters: at most %zu",
                             detail::quotable(device).c_str(), device.size(), longest));
  for (const char c : device)
    if (c <= ' ' || c > '~' || c == '/')
      return failure(e.explain("the device name '%s' has a character that is not allowed",
                               detail::quotable(device).c_str()));
  device_port parsed{device_name_text(device), 0};
  if (colon == text.npos) return parsed;
  std::uint32_t port = 0;
  const std::string_view digits = text.substr(colon + 1);
  if (detail::read_number(digits, 255, false, port) != detail::number_syntax::good || port == 0)
    return failure(e.explain("the port '%s' of device %s is not a number in 1..255",
                             detail::quotable(digits).c_str(), detail::quotable(device).c_str()));
  parsed.port = static_cast<int>(port);
  return parsed;
}

/// "InfiniBand", "Ethernet", "unspecified" (which verbs treats as InfiniBand); "?" otherwise.
[[nodiscard]] constexpr const char* link_layer_name(std::uint8_t link_layer) noexcept {
  switch (link_layer) {
    case IBV_LINK_LAYER_UNSPECIFIED:
      return "unspecified";
    case IBV_LINK_LAYER_INFINIBAND:
      return "InfiniBand";
    case IBV_LINK_LAYER_ETHERNET:
      return "Ethernet";
  }
  return "?";
}

/// One port, as it was when it was queried.
struct port_info {
  static constexpr int unknown = -1;

  int number = 0;              ///< counts from 1
  ibv_port_attr attributes{};  ///< all zero if `failure` is set
  /// The number of non-empty GIDs in the `attributes.gid_tbl_len` slots. Unknown if any port of the
  /// device could not be queried, since one call reads the table of all ports.
  int gids = unknown;
  std::optional<error> failure{};
};

/// One device. Fields that could not be read keep their defaults; `failure` has the reason.
struct device_info {
  device_name_text name{};
  std::uint64_t node_guid = 0;  ///< host byte order; 0 if the driver does not set it
  std::vector<port_info> ports{};
  /// The first failure: opening it, querying it, or reading its GIDs. A device that cannot be
  /// opened still has a name and a node GUID.
  std::optional<error> failure{};
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Opens a device and adds what it reports. Allocates.
inline void describe_open_device(device_info& out, ibv_device* device) {
  auto context = open_device(device);
  if (!context) {
    out.failure = context.error();
    return;
  }
  const auto limits = query_device(*context);
  if (!limits) {
    out.failure = limits.error();
    return;
  }
  std::size_t room = 0;
  bool complete = true;
  for (int number = 1; number <= limits->phys_port_cnt; ++number) {
    port_info& port = out.ports.emplace_back();
    port.number = number;
    if (auto attributes = query_port(*context, number)) {
      port.attributes = *attributes;
      room += static_cast<std::size_t>(attributes->gid_tbl_len);
    } else {
      port.failure = attributes.error();
      complete = false;
    }
  }
  // One call reads the table of all ports, and fails if the array is too small.
  if (!complete) return;
  const auto entries = every_gid(*context, room);
  if (!entries) {
    out.failure = entries.error();
    return;
  }
  for (port_info& port : out.ports)
    port.gids = static_cast<int>(
        std::count_if(entries->begin(), entries->end(), [&port](const ibv_gid_entry& entry) {
          return entry.port_num == static_cast<std::uint32_t>(port.number) &&
                 family(entry.gid) != gid_family::none;
        }));
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Every device of this machine with its ports, in libibverbs' order. It opens each device for a
/// moment, so it is for listings that people read. A failure of one device or port is recorded in
/// its entry and does not affect the others. Errors of the call: those of get_device_list, and
/// ENOMEM.
[[nodiscard]] inline result<std::vector<device_info>> describe_devices() noexcept {
  return detail::catching_bad_alloc([]() -> result<std::vector<device_info>> {
    auto list = get_device_list();
    if (!list) return failure(list.error());
    std::vector<device_info> devices;
    devices.reserve(list->size());
    for (ibv_device* device : *list) {
      device_info& description = devices.emplace_back();
      description.name =
          device_name_text({device->name, ::strnlen(device->name, sizeof device->name)});
      description.node_guid = be64toh(::ibv_get_device_guid(device));
      detail::describe_open_device(description, device);
    }
    return devices;
  });
}

/// One line that describes a port: "port 1: ACTIVE, Ethernet, MTU 1024, LID 0, 2 of 1024 GIDs", or
/// its failure.
[[nodiscard]] inline fixed_text<error::max_message> to_text(const port_info& port) noexcept {
  fixed_text<error::max_message> line;
  line.print("port %d: ", port.number);
  if (port.failure) {
    char message[error::max_message];
    return line.append({message, port.failure->message_to(message, sizeof message)});
  }
  line.print("%s, %s, MTU %d, LID %u, ", detail::port_state_name(port.attributes.state),
             link_layer_name(port.attributes.link_layer), mtu_bytes(port.attributes.active_mtu),
             static_cast<unsigned>(port.attributes.lid));
  if (port.gids == port_info::unknown)
    line.print("%d GID slots", port.attributes.gid_tbl_len);
  else
    line.print("%d of %d GIDs", port.gids, port.attributes.gid_tbl_len);
  return line;
}

/// One line that describes a device: "mlx5_0, node GUID 0c42:a103:00ab:cdef", with its failure if
/// any.
[[nodiscard]] inline fixed_text<error::max_message> to_text(const device_info& device) noexcept {
  fixed_text<error::max_message> line(device.name.view());
  const auto part = [&device](int shift) {
    return static_cast<unsigned>(device.node_guid >> shift & 0xffff);
  };
  line.print(", node GUID %04x:%04x:%04x:%04x", part(48), part(32), part(16), part(0));
  if (device.failure) {
    char message[error::max_message];
    line.append(": ").append({message, device.failure->message_to(message, sizeof message)});
  }
  return line;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
