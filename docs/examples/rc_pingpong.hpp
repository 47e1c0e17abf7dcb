// Messages in both directions over an RC connection; the peer is rc_pingpong or rdma-core's
// ibv_rc_pingpong.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pingpong_wire.hpp"

/// The letters are the options of ibv_rc_pingpong; both ends need the same size, mtu and
/// iterations.
struct pingpong_options {
  std::string server;              ///< empty: be the server
  std::uint16_t tcp_port = 18515;  ///< -p
  std::string device;              ///< -d
  int ib_port = 0;                 ///< -i
  int gid_index = -1;              ///< -g; -1: chosen
  std::uint32_t size = 4096;       ///< -s, bytes of a message
  ibv_mtu mtu = IBV_MTU_1024;      ///< -m
  std::size_t iterations = 1000;   ///< -n
  bool events = false;             ///< -e: sleep until completions come, instead of polling
};

class pingpong {
 public:
  explicit pingpong(const pingpong_options& options)
      : options_(options),
        memory_(2 * std::size_t{options.size}),
        context_(
            ibvxx::or_throw(ibvxx::rdma_context::open({.device_name = options.device,
                                                       .port = options.ib_port,
                                                       .gid_index = options.gid_index,
                                                       .comp_channels = options.events ? 1 : 0,
                                                       .cqs = 1,
                                                       .cqe = static_cast<int>(receive_depth) + 1,
                                                       .notification_cq = false}))) {
    std::fill_n(memory_.begin(), options.size, fill);
    region_ = ibvxx::or_throw(context_.register_memory(std::span(memory_), IBV_ACCESS_LOCAL_WRITE));
    ibv_qp_init_attr attributes{};
    attributes.qp_type = IBV_QPT_RC;
    attributes.send_cq = attributes.recv_cq = context_.cq(0);
    attributes.cap = {.max_send_wr = 1,
                      .max_recv_wr = receive_depth,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = 0};
    qp_ = ibvxx::or_throw(context_.create_qp(attributes));
    ibvxx::or_throw(ibvxx::qp_to_init(qp_, {.port = context_.port()}));
    // Before the address is sent: a receive is posted for every message that can arrive.
    for (std::uint32_t i = 0; i < receive_depth; ++i) post_receive();
    local_ = ibvxx::local_address(qp_, std::random_device{}() & ibvxx::max_24_bit,
                                  context_.port_attributes(), context_.gid().entry.gid);
  }

  [[nodiscard]] const ibvxx::qp_address& local() const noexcept { return local_; }
  [[nodiscard]] const ibvxx::qp_address& remote() const noexcept { return remote_; }

  /// Exchanges addresses and connects. A server is ready before it sends its address, so the client
  /// may send as soon as it has it.
  void meet() {
    peer_socket peer = peer_socket::connect(options_.server, options_.tcp_port);
    constexpr char done[] = "done";
    wire_address theirs{};
    if (options_.server.empty()) {
      peer.receive(theirs);
      connect(theirs);
      peer.send(to_wire(local_));
      char answer[sizeof done];
      peer.receive(answer);
    } else {
      peer.send(to_wire(local_));
      peer.receive(theirs);
      connect(theirs);
      peer.send(done);
    }
  }

  /// A message at a time, the client's first: `iterations` each way. Returns how long it took.
  std::chrono::duration<double> play() {
    const auto began = std::chrono::steady_clock::now();
    std::size_t sent = 0, received = 0, posted = 0;
    const auto serve = [&] {
      post_send();
      ++posted;
    };
    if (!options_.server.empty()) serve();
    const std::size_t lead = posted;  // the client is one message ahead
    std::array<ibv_wc, 16> completions;
    while (sent < options_.iterations || received < options_.iterations) {
      for (const ibv_wc& completion : completed(completions)) {
        const ibvxx::completion_info& info = ibvxx::describe(completion.status);
        if (info.kind != ibvxx::completion_class::success)
          throw ibvxx::exception(
              ibvxx::error(ibvxx::verb::poll_cq, EIO).explain("%s: %s", info.name, info.advice));
        if ((completion.opcode & IBV_WC_RECV) == 0) {
          ++sent;
          continue;
        }
        if (completion.byte_len != options_.size)
          throw ibvxx::exception(
              ibvxx::error(ibvxx::verb::none, EIO)
                  .explain("%u bytes came, not %u", completion.byte_len, options_.size));
        ++received;
        post_receive();
      }
      // The send queue holds one request, and each message is the answer to one.
      if (posted < options_.iterations && posted == sent && posted < received + lead) serve();
    }
    return std::chrono::steady_clock::now() - began;
  }

  /// Whether the last message arrived as both programs fill them.
  [[nodiscard]] bool intact() const {
    const auto received = std::span(memory_).subspan(options_.size);
    return std::all_of(received.begin(), received.end(), [](char byte) { return byte == fill; });
  }

  /// Releases everything; the destructor would, too, but cannot return an error.
  void close() { ibvxx::or_throw(context_.reset()); }

 private:
  static constexpr std::uint32_t receive_depth = 64;
  static constexpr char fill = 0x7b;  // ibv_rc_pingpong's, too
  static constexpr std::chrono::seconds patience{20};

  void connect(const wire_address& theirs) {
    remote_ = ibvxx::or_throw(from_wire(theirs, options_.mtu));
    auto options = ibvxx::or_throw(ibvxx::rtr_options(
        local_, remote_,
        {.port = context_.port(), .sgid_index = static_cast<int>(context_.gid().entry.gid_index)}));
    options.path_mtu = options_.mtu;
    ibvxx::or_throw(ibvxx::qp_to_rtr(qp_, options));
    ibvxx::or_throw(ibvxx::qp_to_rts(qp_, {.sq_psn = local_.psn}));
  }

  // The first half of the memory is sent, the second received into.
  [[nodiscard]] ibv_sge half(std::size_t which) const noexcept {
    return {reinterpret_cast<std::uint64_t>(memory_.data()) + which * options_.size, options_.size,
            region_->lkey};
  }
  void post_receive() {
    ibv_sge piece = half(1);
    ibv_recv_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    ibvxx::or_throw(ibvxx::post_recv(qp_, &request));
  }
  void post_send() {
    ibv_sge piece = half(0);
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    ibvxx::or_throw(ibvxx::post_send(qp_, &request));
  }

  /// At least one completion, or ETIMEDOUT if none arrives in time.
  [[nodiscard]] std::span<const ibv_wc> completed(std::span<ibv_wc> room) {
    if (options_.events) {
      if (!waiter_) {
        ibv_cq* const queues[] = {context_.cq(0)};
        waiter_ = ibvxx::or_throw(ibvxx::cq_waiter::create(context_.comp_channel(0), queues));
      }
      const auto answer = ibvxx::or_throw(waiter_->wait(room, patience));
      if (answer.what == ibvxx::cq_waiter::outcome::completions) return room.first(answer.count);
    } else {
      const auto deadline = std::chrono::steady_clock::now() + patience;
      do {
        const std::size_t count = ibvxx::or_throw(ibvxx::poll_cq(context_.cq(0), room));
        if (count != 0) return room.first(count);
      } while (std::chrono::steady_clock::now() < deadline);
    }
    throw ibvxx::exception(
        ibvxx::error(ibvxx::verb::poll_cq, ETIMEDOUT).explain("the peer is silent"));
  }

  pingpong_options options_;
  std::vector<char> memory_;  // before the context, whose region must be deregistered first
  ibvxx::rdma_context context_;
  ibv_mr* region_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibvxx::qp_address local_{}, remote_{};
  std::optional<ibvxx::cq_waiter> waiter_;
};
