// Datagrams, to one queue pair or to a multicast group.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "data_responder.hpp"
#include "fabric.hpp"

namespace ibvxx::shim {
namespace {

constexpr std::size_t header_size = 40;         // in front of every datagram received
constexpr std::uint32_t any_member = 0xffffff;  // the number that multicast datagrams go to

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

/// A datagram arrives: taken if the queue pair is up and the key is right, otherwise lost.
void arrive(session_state& state, sim_qp& target, std::uint32_t key, const message& arriving) {
  const ibv_qp_state now = target.state();
  if (target.verbs.qp_type != IBV_QPT_UD || target.attr.qkey != key) return;
  if (now != IBV_QPS_RTR && now != IBV_QPS_RTS && now != IBV_QPS_SQD && now != IBV_QPS_SQE) return;
  static_cast<void>(receive(state, target, arriving));
}

}  // namespace

void send_datagram(session_state& state, sim_qp& qp, const send_request& request,
                   const segment_list& local) {
  const ibv_ah_attr& address = request.address;
  header bytes = make_header(address, source_gid(*qp.context, address), request.length);
  segment_list payload;
  payload.add({reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
  for (std::size_t i = 0; i < local.size(); ++i) payload.add(local[i]);
  // On InfiniBand without a GRH the 40 bytes are there all the same, with nothing in them.
  const unsigned flags = address.is_global != 0 ? unsigned{IBV_WC_GRH} : 0U;
  const message arriving{payload, bytes.size() + request.length, request, qp.verbs.qp_num, flags};
  // IBA 10.2.5: a key with its highest bit set stands for the sender's own. Soft-RoCE does not know
  // that (measured).
  const bool own_key = qp.context->as_hardware() && (request.remote_qkey & 0x80000000) != 0;
  const std::uint32_t key = own_key ? qp.attr.qkey : request.remote_qkey;
  const bool multicast = address.is_global != 0 && address.grh.dgid.raw[0] == 0xff;
  if (!multicast) {
    const destination there = route(state, *qp.context, address, qp.peer_hint);
    sim_qp* target =
        there.device ? there.device->qps.find_qp(request.remote_qp & 0xffffff) : nullptr;
    if (target && target->attr.port_num == there.port) arrive(state, *target, key, arriving);
    return;
  }
  const port_description* port = find_port(*qp.context->device, address.port_num);
  if (request.remote_qp != any_member || !port || port->state != IBV_PORT_ACTIVE) return;
  for (const auto& device : state.devices) {
    for (sim_qp* member : device->multicast_members) {
      const port_description* reached = find_port(*device, member->attr.port_num);
      const bool joined =
          std::any_of(member->groups.begin(), member->groups.end(),
                      [&](const ibv_gid& g) { return same_gid(g, address.grh.dgid); });
      if (joined && reached && reached->state == IBV_PORT_ACTIVE)
        arrive(state, *member, key, arriving);
    }
  }
}

}  // namespace ibvxx::shim
