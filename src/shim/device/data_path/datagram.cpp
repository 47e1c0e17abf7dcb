#include "device/data_path/datagram.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/address.hpp"
#include "device/data_path/responder.hpp"
#include "device/data_path/route.hpp"
#include "device/machine.hpp"

namespace ibvxx::shim {
namespace {

constexpr std::size_t header_size = 40;         // in front of every datagram received
constexpr std::uint32_t any_member = 0xffffff;  // the destination QP number of multicast datagrams

using header = std::array<std::uint8_t, header_size>;

void put16(std::uint8_t* at, std::uint64_t value) noexcept {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}

/// The 40 bytes: an IPv6 header, or, for IPv4, 20 zeros and an IPv4 header (RoCE v2; measured).
[[nodiscard]] header make_header(const ibv_ah_attr& address, const ibv_gid& source,
                                 std::uint64_t length) noexcept {
  header bytes{};
  if (address.is_global == 0) return bytes;
  const ibv_global_route& grh = address.grh;
  // UDP 8, BTH 12, DETH 8, the payload, ICRC 4.
  const std::uint64_t packet = 8 + 12 + 8 + length + 4;
  if (is_v4_gid(source)) {
    std::uint8_t* ip = bytes.data() + 20;
    ip[0] = 0x45;
    ip[1] = grh.traffic_class;
    put16(ip + 2, 20 + packet);
    put16(ip + 6, 0x4000);  // do not fragment
    ip[8] = grh.hop_limit;
    ip[9] = IPPROTO_UDP;
    std::memcpy(ip + 12, source.raw + 12, 4);
    std::memcpy(ip + 16, grh.dgid.raw + 12, 4);
    std::uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(ip[i] << 8 | ip[i + 1]);
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    put16(ip + 10, ~sum & 0xffff);
    return bytes;
  }
  const std::uint32_t first =
      6U << 28 | static_cast<std::uint32_t>(grh.traffic_class) << 20 | (grh.flow_label & 0xfffff);
  const std::uint32_t network = htonl(first);
  std::memcpy(bytes.data(), &network, sizeof network);
  put16(bytes.data() + 4, packet);
  bytes[6] = IPPROTO_UDP;
  bytes[7] = grh.hop_limit;
  std::memcpy(bytes.data() + 8, source.raw, sizeof source.raw);
  std::memcpy(bytes.data() + 24, grh.dgid.raw, sizeof grh.dgid.raw);
  return bytes;
}

}  // namespace

void send_datagram(session_state& state, sim_qp& qp, const send_request& request,
                   const segment_list& local) {
  const ibv_ah_attr& address = request.address;
  const ibv_gid source = source_gid(*qp.context, address);
  header bytes = make_header(address, source, request.length);
  segment_list payload;
  payload.add({reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
  for (std::size_t i = 0; i < local.size(); ++i) payload.add(local[i]);
  // IBA 10.2.5: a Q_Key with its highest bit set means the sender's own.
  const bool own_key =
      qp.context->behaviour().high_qkey_means_own && (request.remote_qkey & 0x80000000) != 0;
  // On InfiniBand without a GRH the 40 bytes in front are zeros.
  const message sent{.payload = payload,
                     .length = bytes.size() + request.length,
                     .transport = IBV_QPT_UD,
                     .source_qp = qp.verbs.qp_num,
                     .destination_qp = request.remote_qp & 0xffffff,
                     .is_global = address.is_global != 0,
                     .source_gid = source,
                     .source_lid = 0,
                     .psn = qp.attr.sq_psn,
                     .packets = 1,
                     .path_mtu = path_mtu(qp),
                     .opcode = request.opcode,
                     .solicited = (request.flags & IBV_SEND_SOLICITED) != 0,
                     .immediate = request.immediate,
                     .remote_address = 0,
                     .rkey = 0,
                     .compare_or_add = 0,
                     .swap = 0,
                     .remote_srq = 0,
                     .qkey = own_key ? qp.attr.qkey : request.remote_qkey};
  if (!sent.is_global || address.grh.dgid.raw[0] != 0xff) {
    const destination there = route(state, *qp.context, address, qp.peer_hint);
    if (there.device) receive_datagram(state, *there.device, there.port, sent);
    return;
  }
  const port_description* port = find_port(*qp.context->device, address.port_num);
  if (request.remote_qp != any_member || !port || port->state != IBV_PORT_ACTIVE) return;
  for (const auto& device : machine_of(state).devices)
    receive_multicast(state, *device, address.grh.dgid, sent);
}

}  // namespace ibvxx::shim
