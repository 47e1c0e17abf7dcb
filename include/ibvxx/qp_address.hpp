// The address of a queue pair, which two programs exchange before they connect: as a value, as
// bytes, as text.
#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ibvxx/handle.hpp>
#include <ibvxx/text.hpp>
#include <span>
#include <string_view>

namespace ibvxx {

/// The payload of a path MTU in bytes: 256, 512, 1024, 2048, 4096; 0 for any other value.
[[nodiscard]] constexpr int mtu_bytes(ibv_mtu mtu) noexcept {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << static_cast<int>(mtu) : 0;
}

/// Queue pair and packet sequence numbers have 24 bits.
inline constexpr std::uint32_t max_24_bit = 0xffffff;

}  // namespace ibvxx

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// The address of a queue pair, with what its peer needs to connect to it.
///
/// Neither form below contains a secret or is protected: a peer that can forge one can redirect the
/// connection.
struct qp_address {
  std::uint32_t qpn = 0;       ///< queue pair number, 24 bits
  std::uint32_t psn = 0;       ///< the first packet sequence number that it sends, 24 bits
  std::uint16_t lid = 0;       ///< of the port; 0 on RoCE
  ibv_gid gid{};               ///< all zero: none, the address is the LID
  ibv_mtu mtu = IBV_MTU_1024;  ///< the largest that its port supports

  /// The form in bytes: version 1, 28 bytes, multi-byte fields in network byte order.
  ///
  ///     offset  0  version, 1
  ///             1  mtu, as ibv_mtu: 1 (256 bytes) to 5 (4096)
  ///             2  lid, 2 bytes
  ///             4  qpn, 4 bytes, the first zero
  ///             8  psn, 4 bytes, the first zero
  ///            12  gid, 16 bytes
  static constexpr std::size_t byte_count = 28;
  static constexpr std::uint8_t version = 1;
  using bytes = std::array<std::byte, byte_count>;

  /// The form in text: `qpn:psn:lid:mtu:gid`, for example `0x000011:0x9af3c2:0x0000:1024:fe80::1`.
  /// mtu in bytes; gid as an IPv6 address. At most 80 characters.
  using text = fixed_text<80>;

  /// The byte form. EINVAL naming the field that is out of range.
  [[nodiscard]] result<bytes> to_bytes() const noexcept;
  /// The text form. EINVAL naming the field that is out of range.
  [[nodiscard]] result<text> to_text() const noexcept;

  /// Reads the byte form: exactly byte_count bytes of this version. EINVAL naming what is wrong.
  [[nodiscard]] static result<qp_address> parse(std::span<const std::byte> from) noexcept;
  /// Reads the text form. qpn, psn and lid may be decimal (without leading zeros) or hexadecimal
  /// after 0x. No space or sign, and nothing before or after. EINVAL naming the field and its
  /// limit.
  [[nodiscard]] static result<qp_address> parse(std::string_view from) noexcept;

  friend bool operator==(const qp_address& a, const qp_address& b) noexcept {
    return a.qpn == b.qpn && a.psn == b.psn && a.lid == b.lid && a.mtu == b.mtu &&
           std::memcmp(a.gid.raw, b.gid.raw, sizeof a.gid.raw) == 0;
  }
};

/// The address of `qp` on a port with these attributes and this source GID; `psn` is the sq_psn
/// that the queue pair will have. `qp` must not be null.
[[nodiscard]] inline qp_address local_address(ref<ibv_qp> qp, std::uint32_t psn,
                                              const ibv_port_attr& port,
                                              const ibv_gid& gid) noexcept {
  return {qp->qp_num, psn, port.lid, gid, port.active_mtu};
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

[[nodiscard]] inline error bad_address() noexcept {
  return {verb::none, EINVAL};
}

[[nodiscard]] inline result<void> check_address(const qp_address& address) noexcept {
  error e = bad_address();
  if (address.qpn > max_24_bit)
    e.explain("qp_address.qpn %u is above %u", address.qpn, max_24_bit);
  else if (address.psn > max_24_bit)
    e.explain("qp_address.psn %u is above %u", address.psn, max_24_bit);
  else if (mtu_bytes(address.mtu) == 0)
    e.explain("qp_address.mtu %d is outside %d..%d", static_cast<int>(address.mtu), IBV_MTU_256,
              IBV_MTU_4096);
  else
    return {};
  return failure(e);
}

/// One numeric field of the text form.
[[nodiscard]] inline result<std::uint32_t> address_number(const char* field, std::string_view text,
                                                          std::uint32_t limit) noexcept {
  std::uint32_t value = 0;
  error e = bad_address();
  switch (detail::read_number(text, limit, true, value)) {
    case detail::number_syntax::good:
      return value;
    case detail::number_syntax::malformed:
      e.explain("qp_address.%s '%s' is not a number: decimal, or hexadecimal after 0x", field,
                detail::quotable(text).c_str());
      break;
    case detail::number_syntax::too_large:
      e.explain("qp_address.%s '%s' is above %u", field, detail::quotable(text).c_str(), limit);
      break;
  }
  return failure(e);
}

[[nodiscard]] inline result<ibv_mtu> address_mtu(std::string_view text) noexcept {
  std::uint32_t size = 0;
  if (detail::read_number(text, 4096, false, size) == detail::number_syntax::good)
    for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096})
      if (static_cast<std::uint32_t>(mtu_bytes(mtu)) == size) return mtu;
  return failure(bad_address().explain("qp_address.mtu '%s' is none of 256, 512, 1024, 2048, 4096",
                                       detail::quotable(text).c_str()));
}

[[nodiscard]] inline result<ibv_gid> address_gid(std::string_view text) noexcept {
  ibv_gid gid{};
  const fixed_text<INET6_ADDRSTRLEN> whole(text);  // inet_pton needs a terminating zero
  if (whole.size() == text.size() && text.find('\0') == text.npos &&
      ::inet_pton(AF_INET6, whole.c_str(), gid.raw) == 1)
    return gid;
  return failure(bad_address().explain("qp_address.gid '%s' is not an IPv6 address",
                                       detail::quotable(text).c_str()));
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

inline result<qp_address::bytes> qp_address::to_bytes() const noexcept {
  if (auto valid = detail::check_address(*this); !valid) return failure(valid.error());
  bytes out{};
  const auto put = [&out](std::size_t offset, std::uint32_t value, std::size_t size) {
    for (std::size_t i = size; i-- > 0; value >>= 8) out[offset + i] = std::byte(value & 0xff);
  };
  put(0, version, 1);
  put(1, static_cast<std::uint32_t>(mtu), 1);
  put(2, lid, 2);
  put(4, qpn, 4);
  put(8, psn, 4);
  std::memcpy(&out[12], gid.raw, sizeof gid.raw);
  return out;
}

inline result<qp_address> qp_address::parse(std::span<const std::byte> from) noexcept {
  if (from.size() != byte_count)
    return failure(detail::bad_address().explain("qp_address is %zu bytes long instead of %zu",
                                                 from.size(), byte_count));
  const auto get = [&from](std::size_t offset, std::size_t size) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | std::to_integer<std::uint32_t>(from[offset + i]);
    return value;
  };
  if (get(0, 1) != version)
    return failure(
        detail::bad_address().explain("qp_address.version %u is not %d", get(0, 1), version));
  // Checked before the conversion to an enumerator: the byte may have any value.
  if (get(1, 1) < IBV_MTU_256 || get(1, 1) > IBV_MTU_4096)
    return failure(detail::bad_address().explain("qp_address.mtu %u is outside %d..%d", get(1, 1),
                                                 IBV_MTU_256, IBV_MTU_4096));
  qp_address address{get(4, 4),
                     get(8, 4),
                     static_cast<std::uint16_t>(get(2, 2)),
                     {},
                     static_cast<ibv_mtu>(get(1, 1))};
  std::memcpy(address.gid.raw, &from[12], sizeof address.gid.raw);
  if (auto valid = detail::check_address(address); !valid) return failure(valid.error());
  return address;
}

inline result<qp_address::text> qp_address::to_text() const noexcept {
  if (auto valid = detail::check_address(*this); !valid) return failure(valid.error());
  char gid_text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, gid.raw, gid_text, sizeof gid_text);
  text out;
  out.print("0x%06x:0x%06x:0x%04x:%d:%s", qpn, psn, static_cast<unsigned>(lid), mtu_bytes(mtu),
            gid_text);
  return out;
}

inline result<qp_address> qp_address::parse(std::string_view from) noexcept {
  constexpr const char* names[] = {"qpn", "psn", "lid", "mtu"};
  std::array<std::string_view, 4> fields;
  std::string_view rest = from;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t colon = rest.find(':');
    if (colon == rest.npos)
      return failure(detail::bad_address().explain(
          "qp_address '%s' has no colon after %s: qpn:psn:lid:mtu:gid is expected",
          detail::quotable(from).c_str(), names[i]));
    fields[i] = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
  }
  const auto qpn = detail::address_number(names[0], fields[0], max_24_bit);
  if (!qpn) return failure(qpn.error());
  const auto psn = detail::address_number(names[1], fields[1], max_24_bit);
  if (!psn) return failure(psn.error());
  const auto lid = detail::address_number(names[2], fields[2], 0xffff);
  if (!lid) return failure(lid.error());
  const auto mtu = detail::address_mtu(fields[3]);
  if (!mtu) return failure(mtu.error());
  const auto gid = detail::address_gid(rest);
  if (!gid) return failure(gid.error());
  return qp_address{*qpn, *psn, static_cast<std::uint16_t>(*lid), *gid, *mtu};
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
