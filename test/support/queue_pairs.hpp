// Queue pairs that carry data: two ends on one or two simulated devices, connected to each other,
// and requests to post on them.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <ibvxx/shim.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connect.hpp"

namespace ibvxx::test {

inline constexpr int remote_access =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr int every_access = IBV_ACCESS_LOCAL_WRITE | remote_access | IBV_ACCESS_MW_BIND;
inline constexpr std::uint32_t datagram_key = 0x11111111;

/// The two kinds of device that tests run on.
enum class device_profile : std::uint8_t { soft_roce, hardware };

/// Two devices of one profile, "sim0" and "sim1", each with addresses of its own.
inline shim::simulated two_devices(device_profile profile = device_profile::soft_roce) {
  shim::simulated machine{{}};
  for (const std::string name : {"sim0", "sim1"}) {
    auto device = shim::device_description::hardware(name);
    if (profile == device_profile::soft_roce) device = {.name = name};
    device.ports[0].gids = {{shim::gid("fe80::1" + name.substr(3))},
                            {shim::gid("::ffff:10.0.0.1" + name.substr(3))}};
    machine.devices.push_back(device);
  }
  return machine;
}

/// What both ends of a pair are made with.
struct pair_options {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap cap = {16, 16, 4, 4, 64};
  int cqe = 63;
  bool signal_all = false;
  int access = remote_access;  ///< that each queue pair grants the other
  int region_access = every_access;
  int timeout = 14;
  int rnr_retry = 7;
  int reads = 4;  ///< RDMA reads and atomics at a time, both ways
  const char* device_b = "sim0";
  bool with_srq = false;  ///< at end b
};

/// RESET to RTS, from one address to another.
inline void connect(const unique_qp& qp, const qp_address& from, const qp_address& to,
                    const pair_options& options) {
  connect(qp, from, to,
          connection{.access = options.access,
                     .qkey = datagram_key,
                     .timeout = options.timeout,
                     .rnr_retry = options.rnr_retry,
                     .reads = options.reads});
}

/// One end: everything that a queue pair needs, and 4 KiB of registered memory.
struct end_point {
  static constexpr std::size_t size = 4096;

  explicit end_point(const char* device, const pair_options& options, bool with_srq = false)
      : context(or_throw(open_device(get_device_list()->find(device)))),
        pd(or_throw(alloc_pd(context))),
        channel(or_throw(create_comp_channel(context))),
        send_cq(or_throw(create_cq(context, options.cqe, channel.get()))),
        recv_cq(or_throw(create_cq(context, options.cqe, channel.get()))),
        region(or_throw(reg_mr(pd, memory, size, options.region_access))) {
    or_throw(set_nonblocking(context->async_fd));
    or_throw(set_nonblocking(channel->fd));
    if (with_srq) {
      ibv_srq_init_attr wanted{nullptr, {options.cap.max_recv_wr, options.cap.max_recv_sge, 0}};
      srq = or_throw(create_srq(pd, wanted));
    }
    qp = make_qp(options);
    address = address_of(qp);
  }

  [[nodiscard]] unique_qp make_qp(const pair_options& options) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = send_cq.get();
    wanted.recv_cq = recv_cq.get();
    wanted.srq = srq.get();
    wanted.cap = options.cap;
    wanted.qp_type = options.type;
    wanted.sq_sig_all = options.signal_all ? 1 : 0;
    return or_throw(create_qp(pd, wanted));
  }

  [[nodiscard]] qp_address address_of(const unique_qp& one) const {
    return test::address_of(one, one->qp_num);
  }
  void connect_to(const qp_address& peer, const pair_options& options) {
    connect(qp, address, peer, options);
  }

  [[nodiscard]] std::uint64_t at(std::size_t offset = 0) const noexcept {
    return reinterpret_cast<std::uintptr_t>(memory) + offset;
  }
  [[nodiscard]] ibv_sge piece(std::size_t offset, std::size_t length) const noexcept {
    return {at(offset), static_cast<std::uint32_t>(length), region->lkey};
  }
  void fill(std::size_t offset, std::string_view text) { text.copy(memory + offset, text.size()); }
  [[nodiscard]] std::string text(std::size_t offset, std::size_t length) const {
    return {memory + offset, length};
  }
  [[nodiscard]] std::uint64_t word(std::size_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, memory + offset, sizeof value);
    return value;
  }
  void set_word(std::size_t offset, std::uint64_t value) {
    std::memcpy(memory + offset, &value, sizeof value);
  }
  /// As the device has it, not as libibverbs was told last.
  [[nodiscard]] ibv_qp_state state() const {
    return or_throw(query_qp(qp, IBV_QP_STATE)).attr.qp_state;
  }

  alignas(64) char memory[size] = {};
  unique_context context;
  unique_pd pd;
  unique_comp_channel channel;
  unique_cq send_cq, recv_cq;
  unique_mr region;
  unique_srq srq{};
  unique_qp qp{};
  qp_address address{};
};

/// Two ends that talk to each other; UD ends are up, and know of no peer.
struct queue_pairs {
  explicit queue_pairs(const pair_options& options = {})
      : a("sim0", options), b(options.device_b, options, options.with_srq) {
    a.connect_to(b.address, options);
    b.connect_to(a.address, options);
  }
  end_point a, b;
};

/// A request to send, signaled, in the making: request(1, IBV_WR_SEND, {a.piece(0, 8)}).post(a.qp).
class request {
 public:
  request(std::uint64_t wr_id, ibv_wr_opcode opcode, std::vector<ibv_sge> pieces)
      : pieces_(std::move(pieces)) {
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
  }
  request& flags(unsigned all) {
    wr.send_flags = all;
    return *this;
  }
  request& to(std::uint64_t address, std::uint32_t rkey) {
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    return *this;
  }
  request& to(const end_point& end, std::size_t offset) {
    return to(end.at(offset), end.region->rkey);
  }
  request& atomic(const end_point& end, std::size_t offset, std::uint64_t compare_add,
                  std::uint64_t swap = 0) {
    wr.wr.atomic.remote_addr = end.at(offset);
    wr.wr.atomic.rkey = end.region->rkey;
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    return *this;
  }
  request& immediate(std::uint32_t data) {
    wr.imm_data = htobe32(data);
    return *this;
  }
  request& invalidates(std::uint32_t rkey) {
    wr.invalidate_rkey = rkey;
    return *this;
  }
  request& datagram(ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey = datagram_key) {
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = qkey;
    return *this;
  }
  /// The errno, or 0.
  int post(ref<ibv_qp> qp) {
    wr.sg_list = pieces_.data();
    wr.num_sge = static_cast<int>(pieces_.size());
    const auto posted = post_send(qp, &wr);
    return posted ? 0 : posted.error().code();
  }

  ibv_send_wr wr{};

 private:
  std::vector<ibv_sge> pieces_;
};

/// Posts a receive; the errno, or 0.
inline int receive(ref<ibv_qp> qp, std::uint64_t wr_id, std::vector<ibv_sge> pieces) {
  ibv_recv_wr wr{wr_id, nullptr, pieces.data(), static_cast<int>(pieces.size())};
  const auto posted = post_recv(qp, &wr);
  return posted ? 0 : posted.error().code();
}
inline int receive(ref<ibv_srq> srq, std::uint64_t wr_id, std::vector<ibv_sge> pieces) {
  ibv_recv_wr wr{wr_id, nullptr, pieces.data(), static_cast<int>(pieces.size())};
  const auto posted = post_srq_recv(srq, &wr);
  return posted ? 0 : posted.error().code();
}

/// All completions that are there.
inline std::vector<ibv_wc> drain(ref<ibv_cq> cq) {
  std::vector<ibv_wc> all;
  ibv_wc some[8];
  for (std::size_t taken = 8; taken == 8;) {
    taken = or_throw(poll_cq(cq, some));
    all.insert(all.end(), some, some + taken);
  }
  return all;
}

/// "1 SUCCESS RECV 64": wr_id, status, and of a success what was done and how many bytes came.
inline std::string told(const ibv_wc& wc) {
  std::string text = std::to_string(wc.wr_id) + " " + (wc_status_name(wc.status) + sizeof "IBV_WC");
  if (wc.status != IBV_WC_SUCCESS) return text;
  const auto bytes = " " + std::to_string(wc.byte_len);
  switch (wc.opcode) {
    case IBV_WC_SEND:
      return text + " SEND";
    case IBV_WC_RDMA_WRITE:
      return text + " RDMA_WRITE";
    case IBV_WC_RDMA_READ:
      return text + " RDMA_READ" + bytes;
    case IBV_WC_COMP_SWAP:
      return text + " COMP_SWAP" + bytes;
    case IBV_WC_FETCH_ADD:
      return text + " FETCH_ADD" + bytes;
    case IBV_WC_LOCAL_INV:
      return text + " LOCAL_INV";
    case IBV_WC_BIND_MW:
      return text + " BIND_MW";
    case IBV_WC_RECV:
      return text + " RECV" + bytes;
    case IBV_WC_RECV_RDMA_WITH_IMM:
      return text + " RECV_RDMA_WITH_IMM" + bytes;
    default:
      return text + " opcode " + std::to_string(wc.opcode);
  }
}

/// The same for all completions that are there: "1 SUCCESS SEND; 2 WR_FLUSH_ERR", or "".
inline std::string polled(ref<ibv_cq> cq) {
  std::string text;
  for (const ibv_wc& wc : drain(cq)) text += (text.empty() ? "" : "; ") + told(wc);
  return text;
}

/// Async events that are there, acknowledged: "QP_ACCESS_ERR, CQ_ERR", or "".
inline std::string events_of(ref<ibv_context> context) {
  std::string text;
  while (auto event = or_throw(get_async_event(context))) {
    const auto type = (*event)->event_type;
    text += text.empty() ? "" : ", ";
    switch (type) {
      case IBV_EVENT_CQ_ERR:
        text += "CQ_ERR";
        break;
      case IBV_EVENT_QP_REQ_ERR:
        text += "QP_REQ_ERR";
        break;
      case IBV_EVENT_QP_ACCESS_ERR:
        text += "QP_ACCESS_ERR";
        break;
      case IBV_EVENT_COMM_EST:
        text += "COMM_EST";
        break;
      case IBV_EVENT_SQ_DRAINED:
        text += "SQ_DRAINED";
        break;
      case IBV_EVENT_QP_LAST_WQE_REACHED:
        text += "QP_LAST_WQE_REACHED";
        break;
      case IBV_EVENT_SRQ_LIMIT_REACHED:
        text += "SRQ_LIMIT_REACHED";
        break;
      default:
        text += std::to_string(type);
    }
  }
  return text;
}

/// Whether poll(2) finds something to read within the time.
inline bool readable(int fd, int milliseconds = 0) {
  pollfd asked{fd, POLLIN, 0};
  return ::poll(&asked, 1, milliseconds) == 1;
}

}  // namespace ibvxx::test
