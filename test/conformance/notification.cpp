// Completion events: when they are raised, how often, and what a destroy waits for.
#include <thread>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

owned<ibv_comp_channel> make_channel(const setting& s) {
  owned<ibv_comp_channel> made(ibv_create_comp_channel(s.context));
  need(made != nullptr, "ibv_create_comp_channel");
  set_non_blocking(made->fd);
  return made;
}

/// Reads events until none comes for a while, acknowledging each by default.
std::size_t events(const setting& s, ibv_comp_channel* channel, std::size_t expected,
                   bool acknowledge = true) {
  std::size_t count = 0;
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  while (wait_readable(channel->fd, count < expected ? s.world.patience() : s.world.silence())) {
    if (ibv_get_cq_event(channel, &cq, &cookie) != 0) break;
    if (acknowledge) ibv_ack_cq_events(cq, 1);
    ++count;
  }
  return count;
}

std::string event_count(const setting& s, ibv_comp_channel* channel, std::size_t expected) {
  return std::to_string(events(s, channel, expected));
}

/// A connection whose responder raises events on a channel.
struct notified {
  explicit notified(const setting& setting_)
      : s(setting_), channel(make_channel(s)), c(s, options(channel.get())) {}

  static connection_options options(ibv_comp_channel* channel) {
    connection_options chosen;
    chosen.channel = channel;
    return chosen;
  }
  void send(std::uint64_t id, unsigned flags = 0) {
    post_receive(c.responder.qp.get(), id, {c.responder.memory.piece(0, 64)});
    request(id, IBV_WR_SEND, {c.requester.memory.piece(0, 8)})
        .flags(flags)
        .post(c.requester.qp.get());
    collect(s, c.requester.cq.get(), 1);
  }
  [[nodiscard]] ibv_cq* cq() const { return c.responder.cq.get(); }
  void arm(int solicited = 0) const { ibv_req_notify_cq(cq(), solicited); }
  void drain() const {
    ibv_wc completion{};
    while (ibv_poll_cq(cq(), 1, &completion) == 1) continue;
  }

  const setting& s;
  owned<ibv_comp_channel> channel;
  connection c;
};

void one_shot(const setting& s) {
  notified n(s);
  n.send(1);
  probe("not-armed", event_count(s, n.channel.get(), 0));
  n.drain();
  n.arm();
  n.send(2);
  probe("armed", event_count(s, n.channel.get(), 1));
  n.send(3);
  probe("one-shot", event_count(s, n.channel.get(), 0));
  // Completions that are in the queue already raise no event.
  n.arm();
  probe("armed-with-completions-there", event_count(s, n.channel.get(), 0));
  n.send(4);
  probe("armed-with-completions-there-then-one-more", event_count(s, n.channel.get(), 1));
  n.drain();
  n.arm();
  n.arm();
  n.send(5);
  n.send(6);
  probe("armed-twice-two-completions", event_count(s, n.channel.get(), 1));
  n.drain();
}

void solicited(const setting& s) {
  notified n(s);
  n.arm(1);
  n.send(1);
  probe("solicited-only-plain-send", event_count(s, n.channel.get(), 0));
  n.send(2, IBV_SEND_SOLICITED);
  probe("solicited-only-solicited-send", event_count(s, n.channel.get(), 1));
  n.drain();
  n.arm(0);
  n.arm(1);
  n.send(3);
  probe("armed-for-any-then-for-solicited-plain-send", event_count(s, n.channel.get(), 1));
  n.drain();
  n.arm(1);
  n.arm(0);
  n.send(4);
  probe("armed-for-solicited-then-for-any-plain-send", event_count(s, n.channel.get(), 1));
  n.drain();
  n.arm(1);
  post_receive(n.c.responder.qp.get(), 5, {n.c.responder.memory.piece(0, 64)});
  request(5, IBV_WR_RDMA_WRITE_WITH_IMM, {n.c.requester.memory.piece(0, 8)})
      .remote(n.c.responder.memory.address(), n.c.responder.memory->rkey)
      .flags(IBV_SEND_SOLICITED)
      .post(n.c.requester.qp.get());
  probe("solicited-only-solicited-write-with-imm", event_count(s, n.channel.get(), 1));
  n.drain();
  n.arm(1);
  post_receive(n.c.responder.qp.get(), 6, {n.c.responder.memory.piece(0, 64)});
  modify_state(n.c.responder.qp.get(), IBV_QPS_ERR);
  probe("solicited-only-flushed-receive", event_count(s, n.channel.get(), 1));
  for (const bool asks : {false, true}) {
    notified failing(s);
    failing.arm(1);
    post_receive(failing.c.responder.qp.get(), 7, {failing.c.responder.memory.piece(0, 4)});
    request(7, IBV_WR_SEND, {failing.c.requester.memory.piece(0, 8)})
        .flags(asks ? IBV_SEND_SOLICITED : 0)
        .post(failing.c.requester.qp.get());
    collect(s, failing.c.requester.cq.get(), 1);
    probe(asks ? "solicited-only-failed-receive-solicited" : "solicited-only-failed-receive",
          event_count(s, failing.channel.get(), asks ? 1 : 0));
  }
}

/// The requester's side: sends are completions too.
void of_sends(const setting& s) {
  const auto channel = make_channel(s);
  connection_options options;
  options.channel = channel.get();
  connection c(s, options);
  ibv_req_notify_cq(c.requester.cq.get(), 0);
  const auto write = [&](unsigned flags) {
    request r(1, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)});
    r.remote(c.responder.memory.address(), c.responder.memory->rkey);
    r.wr.send_flags = flags;
    r.post(c.requester.qp.get());
  };
  write(0);
  probe("unsignaled-write", event_count(s, channel.get(), 0));
  write(IBV_SEND_SIGNALED);
  probe("signaled-write", event_count(s, channel.get(), 1));
  ibv_req_notify_cq(c.requester.cq.get(), 1);
  write(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
  probe("solicited-only-own-solicited-write", event_count(s, channel.get(), 0));
  request bad(2, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)});
  bad.remote(c.responder.memory.address(), c.responder.memory->rkey ^ 1).post(c.requester.qp.get());
  probe("solicited-only-failed-write", event_count(s, channel.get(), 1));
}

void shared_channel(const setting& s) {
  const auto channel = make_channel(s);
  int cookies[2] = {};
  owned<ibv_cq> cqs[2];
  for (int i = 0; i < 2; ++i)
    cqs[i] = own(ibv_create_cq(s.context, 16, &cookies[i], channel.get(), 0));
  const region memory(s, 4096);
  owned<ibv_qp> qps[2];
  for (int i = 0; i < 2; ++i) {
    qps[i] = make_qp(s, cqs[i].get());
    bring_to(s, qps[i].get(), IBV_QPS_RTS, qps[i]->qp_num);
    ibv_req_notify_cq(cqs[i].get(), 0);
  }
  const auto write = [&](int i) {
    request(1, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)})
        .remote(memory.address(64), memory.get()->rkey)
        .post(qps[i].get());
  };
  write(1);
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  wait_readable(channel->fd, s.world.patience());
  probe_minus_one("shared-channel-get_cq_event",
                  [&] { return ibv_get_cq_event(channel.get(), &cq, &cookie); });
  probe("shared-channel-names", std::string(cq == cqs[1].get() ? "its cq" : "another cq") +
                                    (cookie == &cookies[1] ? ", its cookie" : ", another cookie"));
  if (cq) ibv_ack_cq_events(cq, 1);
  probe_minus_one("shared-channel-empty-again",
                  [&] { return ibv_get_cq_event(channel.get(), &cq, &cookie); });
  ibv_req_notify_cq(cqs[1].get(), 0);
  write(0);
  write(1);
  probe("shared-channel-both", event_count(s, channel.get(), 2));
}

/// A channel that blocks, as they are made: another thread's completion wakes it.
void blocking(const setting& s) {
  notified n(s);
  ibv_comp_channel* const channel = own(ibv_create_comp_channel(s.context)).release();
  {
    const auto cq = make_cq(s, 16, channel);
    const region memory(s, 4096);
    const auto qp = make_qp(s, cq.get());
    bring_to(s, qp.get(), IBV_QPS_RTS, qp->qp_num);
    ibv_req_notify_cq(cq.get(), 0);
    ibv_cq* named = nullptr;
    probe("get_cq_event-without-event", or_blocks(
                                            s,
                                            [&] {
                                              void* cookie = nullptr;
                                              return ibv_get_cq_event(channel, &named, &cookie);
                                            },
                                            [&] {
                                              request(1, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)})
                                                  .remote(memory.address(64), memory.get()->rkey)
                                                  .post(qp.get());
                                            }));
    if (named) ibv_ack_cq_events(named, 1);
  }
  ibv_destroy_comp_channel(channel);
}

/// A CQ with events that were read, on a channel that outlives it.
struct eventful {
  explicit eventful(const setting& setting_) : s(setting_), channel(make_channel(s)) {
    owned<ibv_cq> made = make_cq(s, 64, channel.get());
    const region memory(s, 4096);
    const auto qp = make_qp(s, made.get());
    bring_to(s, qp.get(), IBV_QPS_RTS, qp->qp_num);
    for (int i = 0; i < 3; ++i) {
      ibv_req_notify_cq(made.get(), 0);
      request(1, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)})
          .remote(memory.address(64), memory.get()->rkey)
          .post(qp.get());
      collect(s, made.get(), 1);
      wait_readable(channel->fd, s.world.patience());
    }
    cq = made.release();
  }
  std::size_t read(std::size_t count) {
    std::size_t done = 0;
    ibv_cq* named = nullptr;
    void* cookie = nullptr;
    while (done < count && ibv_get_cq_event(channel.get(), &named, &cookie) == 0) ++done;
    return done;
  }
  [[nodiscard]] std::string destroy(unsigned unblocking_acknowledgements) {
    return or_blocks(
        s, [this] { return ibv_destroy_cq(cq); },
        [&] { ibv_ack_cq_events(cq, unblocking_acknowledgements); });
  }

  const setting& s;
  owned<ibv_comp_channel> channel;
  ibv_cq* cq = nullptr;
};

void acknowledging(const setting& s) {
  {
    eventful e(s);
    probe("three-events-none-read", e.destroy(0));
    ibv_cq* cq = nullptr;
    void* cookie = nullptr;
    probe_minus_one("events-of-a-destroyed-cq",
                    [&] { return ibv_get_cq_event(e.channel.get(), &cq, &cookie); });
  }
  {
    eventful e(s);
    probe("three-events-read", std::to_string(e.read(3)));
    ibv_ack_cq_events(e.cq, 3);
    probe("three-events-acknowledged-at-once", e.destroy(0));
  }
  {
    eventful e(s);
    e.read(3);
    for (int i = 0; i < 3; ++i) ibv_ack_cq_events(e.cq, 1);
    probe("three-events-acknowledged-one-by-one", e.destroy(0));
  }
  {
    eventful e(s);
    e.read(3);
    ibv_ack_cq_events(e.cq, 2);
    probe("three-read-two-acknowledged", e.destroy(1));
  }
  {
    eventful e(s);
    e.read(1);
    probe("one-of-three-read-none-acknowledged", e.destroy(1));
  }
  {
    eventful e(s);
    e.read(1);
    ibv_ack_cq_events(e.cq, 1);
    probe("one-of-three-read-and-acknowledged", e.destroy(0));
  }
  {
    eventful e(s);
    e.read(3);
    ibv_ack_cq_events(e.cq, 0);
    probe("three-read-zero-acknowledged", e.destroy(3));
  }
  {
    eventful e(s);
    e.read(1);
    ibv_ack_cq_events(e.cq, 2);
    // Only the sum counts, modulo 2^32: this takes one back.
    probe("one-read-two-acknowledged", e.destroy(0xffffffff));
  }
  {
    // With a queue pair it says EBUSY at once, whatever is unacknowledged.
    eventful e(s);
    e.read(1);
    const auto qp = make_qp(s, e.cq);
    probe("unacknowledged-and-in-use", e.destroy(0));
  }
}

}  // namespace

void probe_notification(const setting& s) {
  one_shot(s);
  solicited(s);
  of_sends(s);
  shared_channel(s);
  blocking(s);
}

void probe_acknowledgement(const setting& s) {
  acknowledging(s);
}

}  // namespace conformance
