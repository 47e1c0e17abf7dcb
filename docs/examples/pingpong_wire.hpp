// How ibv_rc_pingpong of rdma-core and rc_pingpong exchange their addresses: over TCP, before there
// is an RDMA connection.
#pragma once

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ibvxx/fd.hpp>
#include <ibvxx/or_throw.hpp>
#include <ibvxx/qp_address.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

/// `lid:qpn:psn:gid` in lower-case hexadecimal of 4, 6, 6 and 32 digits, and a zero at the end.
/// The path MTU is not exchanged: both sides must use the same option.
using wire_address = std::array<char, 52>;

[[nodiscard]] inline wire_address to_wire(const ibvxx::qp_address& address) {
  wire_address wire{};
  int written = std::snprintf(wire.data(), wire.size(), "%04x:%06x:%06x:", unsigned{address.lid},
                              address.qpn, address.psn);
  for (const std::uint8_t byte : address.gid.raw)
    written += std::snprintf(wire.data() + written, wire.size() - static_cast<std::size_t>(written),
                             "%02x", unsigned{byte});
  return wire;
}

/// Accepts only the exact form, since it comes from the network; else EINVAL with the position.
[[nodiscard]] inline ibvxx::result<ibvxx::qp_address> from_wire(const wire_address& wire,
                                                                ibv_mtu mtu) {
  constexpr std::string_view form = "xxxx:xxxxxx:xxxxxx:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
  static_assert(form.size() + 1 == std::tuple_size<wire_address>::value);
  std::array<std::uint8_t, form.size()> digits{};
  for (std::size_t i = 0; i < form.size(); ++i) {
    const char c = wire[i];
    const std::size_t digit = std::string_view("0123456789abcdef").find(c);
    if (form[i] == ':' ? c != ':' : digit == std::string_view::npos)
      return ibvxx::failure(ibvxx::error(ibvxx::verb::none, EINVAL)
                                .explain("the peer's address is wrong at character %zu", i));
    digits[i] = static_cast<std::uint8_t>(digit);
  }
  if (wire.back() != '\0')
    return ibvxx::failure(
        ibvxx::error(ibvxx::verb::none, EINVAL).explain("the peer's address does not end"));
  const auto number = [&digits](std::size_t begin, std::size_t length) {
    std::uint32_t value = 0;
    for (std::size_t i = begin; i < begin + length; ++i) value = value << 4 | digits[i];
    return value;
  };
  ibvxx::qp_address address;
  address.lid = static_cast<std::uint16_t>(number(0, 4));
  address.qpn = number(5, 6);
  address.psn = number(12, 6);
  address.mtu = mtu;
  for (std::size_t i = 0; i < sizeof address.gid.raw; ++i)
    address.gid.raw[i] = static_cast<std::uint8_t>(number(19 + 2 * i, 2));
  return address;
}

[[noreturn]] inline void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// A TCP connection.
class peer_socket {
 public:
  /// To the server `host`; without one, waits for a client.
  static peer_socket connect(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = host.empty() ? AI_PASSIVE : 0;
    addrinfo* found = nullptr;
    const int code = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                   std::to_string(port).c_str(), &hints, &found);
    if (code != 0) throw std::runtime_error(host + ": " + ::gai_strerror(code));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    errno = EADDRNOTAVAIL;
    for (const addrinfo* one = found; one; one = one->ai_next) {
      ibvxx::unique_fd fd(::socket(one->ai_family, one->ai_socktype, one->ai_protocol));
      if (!fd) continue;
      if (!host.empty()) {
        if (::connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) return peer_socket(fd);
        continue;
      }
      const int yes = 1;
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (::bind(fd.get(), one->ai_addr, one->ai_addrlen) != 0 || ::listen(fd.get(), 1) != 0)
        continue;
      ibvxx::unique_fd client(::accept(fd.get(), nullptr, nullptr));
      if (!client) throw_errno("accept");
      return peer_socket(client);
    }
    throw_errno(host.empty() ? "bind" : "connect");
  }

  /// In one piece: the other side reads once.
  void send(std::span<const char> bytes) {
    if (::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size()))
      throw_errno("telling the peer");
  }
  void receive(std::span<char> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
      if (count == 0) errno = ECONNRESET;
      if (count <= 0) throw_errno("hearing from the peer");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

 private:
  explicit peer_socket(ibvxx::unique_fd& fd) noexcept : fd_(std::move(fd)) {}
  ibvxx::unique_fd fd_;
};
