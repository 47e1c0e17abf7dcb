// The steps that change the state of queue pairs, poll, and read events.
#include <algorithm>
#include <ibvxx/or_throw.hpp>
#include <utility>

#include "program.hpp"

namespace ibvxx::model_test {
namespace {

[[nodiscard]] bool has_length(ibv_wc_opcode opcode) {
  return (opcode & IBV_WC_RECV) != 0 || opcode == IBV_WC_RDMA_READ || opcode == IBV_WC_FETCH_ADD;
}

[[nodiscard]] std::string told(const completion& one) {
  return "wr " + std::to_string(one.wr_id) + " status " + std::to_string(one.status) + " opcode " +
         std::to_string(one.opcode) + " len " + std::to_string(one.length) + " qp " +
         std::to_string(one.qp_num);
}

[[nodiscard]] bool same(const ibv_wc& real, const completion& expected) {
  if (real.wr_id != expected.wr_id || real.status != expected.status ||
      real.qp_num != expected.qp_num)
    return false;
  if (expected.status != IBV_WC_SUCCESS) return true;  // the rest means nothing
  return real.opcode == expected.opcode &&
         (!has_length(expected.opcode) || real.byte_len == expected.length);
}

}  // namespace

/// Takes a queue pair one state on. 0 or the errno; the model follows a success.
int program::advance(entry<unique_qp>& one, ibv_qp_state state, const queue_pair& peer,
                     std::uint32_t psn) {
  queue_pair& qp = wire_.pairs.at(one.id);
  const bool reaches = wire_.port_up[qp.device];
  const int injected = maybe_inject(verb::modify_qp, 100);
  result<void> done;
  switch (state) {
    case IBV_QPS_RESET:
      done = qp_to_reset(one.owner);
      break;
    case IBV_QPS_INIT: {
      const int access =
          chance(8) ? 0
                    : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
      done = qp_to_init(one.owner, {.access = access});
      if (done) qp.access = static_cast<unsigned>(access);
      break;
    }
    case IBV_QPS_RTR: {
      qp_rtr_options path;
      path.path.is_global = 1;
      path.path.port_num = 1;
      path.path.grh.sgid_index = 1;
      path.path.grh.dgid = shim::gid(peer.device == 0 ? "::ffff:10.0.0.10" : "::ffff:10.0.0.11");
      path.dest_qpn = peer.number;
      path.rq_psn = psn;
      path.max_dest_rd_atomic = 4;
      done = qp_to_rtr(one.owner, path);
      if (done) {
        qp.peer = peer.number;
        qp.peer_device = peer.device;
        qp.next_expected = psn;
      }
      break;
    }
    default: {
      // Any queue pair may take an SRQ's receives: which one waits for them is not known
      // beforehand.
      const bool waits = peer.srq == none && !chance(4);
      done = qp_to_rts(one.owner, {.sq_psn = psn, .rnr_retry = waits ? 7 : 0, .max_rd_atomic = 4});
      if (done) {
        qp.next_sent = psn;
        qp.waits_for_ever = waits;
      }
    }
  }
  const int code = done ? 0 : done.error().code();
  const int expected = injected != 0                      ? injected
                       : state == IBV_QPS_RTR && !reaches ? ENETUNREACH
                                                          : 0;
  did("QP to a state, which said", one.id, state, code);
  expect_equal(code, expected, "a change of state said");
  if (code == 0) {
    wire_.enter(qp, state);
    wire_.settle();
  }
  return code;
}

/// Two queue pairs, perhaps one, taken down and up again towards each other, with packet numbers
/// that no other connection has.
void program::connect() {
  auto* one = pick(qps_);
  auto* other = pick(qps_);
  if (!one) return;
  next_psn_ += 0x1000;
  const std::uint32_t psn = next_psn_;
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (advance(*one, state, wire_.pairs.at(other->id), psn) != 0) return;
    if (one != other && advance(*other, state, wire_.pairs.at(one->id), psn) != 0) return;
  }
}

void program::change_state() {
  auto* one = pick(qps_);
  if (!one) return;
  queue_pair& qp = wire_.pairs.at(one->id);
  if (chance(3)) {
    static_cast<void>(advance(*one, IBV_QPS_RESET, qp, 0));
    return;
  }
  const bool possible = qp.state != IBV_QPS_RESET;
  const auto done = qp_to_error(one->owner);
  did("QP to ERR", one->id);
  expect(done.has_value() == possible, "a change to ERR");
  if (!done) return;
  wire_.enter(qp, IBV_QPS_ERR);
  wire_.settle();
}

void program::poll() {
  auto* filled = pick_if(cqs_, [&](object_id id) { return !wire_.queues.at(id).entries.empty(); });
  auto* one = filled && !chance(8) ? filled : pick(cqs_);
  if (!one) return;
  queue& model = wire_.queues.at(one->id);
  std::array<ibv_wc, 8> some{};
  const std::size_t room = 1 + below(some.size());
  if (maybe_inject(verb::poll_cq) != 0) {
    expect(!poll_cq(one->owner, std::span(some).first(room)), "a poll that was to fail");
    return;
  }
  const auto polled = poll_cq(one->owner, std::span(some).first(room));
  did("poll a CQ", one->id);
  const std::size_t expected = std::min(room, model.entries.size());
  expect(polled.has_value(), "a poll failed");
  for (std::size_t i = 0; i < std::min(*polled, expected); ++i) {
    const completion real{some[i].wr_id, some[i].status, some[i].opcode, some[i].byte_len,
                          some[i].qp_num};
    if (!same(some[i], model.entries.front()))
      disagree("a completion is " + told(real) + " instead of " + told(model.entries.front()));
    model.entries.pop_front();
    ++seen_.statuses[real.status];
    if (real.status == IBV_WC_SUCCESS) ++seen_.opcodes[real.opcode];
  }
  expect_equal(*polled, expected, "completions");
}

void program::arm() {
  auto* one = pick(cqs_);
  if (!one) return;
  const int injected = maybe_inject(verb::req_notify_cq);
  const auto armed = req_notify_cq(one->owner);
  did("arm a CQ", one->id);
  expect((armed ? 0 : armed.error().code()) == injected, "arming");
  if (injected == 0) wire_.queues.at(one->id).armed = true;
}

void program::read_completion_event() {
  auto* one = pick(channels_);
  if (!one) return;
  std::size_t waiting = 0;
  for (const auto& [id, cq] : wire_.queues)
    if (channel_of_[id] == one->id) waiting += cq.events;
  const auto read = get_cq_event(one->owner);
  did("read an event of a channel", one->id);
  expect(read.has_value(), "reading an event failed");
  expect(read->has_value() == (waiting != 0), "an event is missing, or too many");
  if (!*read) return;
  for (const auto& cq : cqs_)
    if (cq.owner.get() == (*read)->cq()) {
      queue& named = wire_.queues.at(cq.id);
      expect(named.events != 0, "an event names another CQ");
      --named.events;
      ++seen_.completion_events;
      return;
    }
  expect(false, "an event names a CQ that is gone");
}

void program::read_async_events() {
  for (auto& context : contexts_) {
    if (!context.owner) continue;
    std::vector<ibv_event_type> expected = std::exchange(port_events_[context.id], {});
    for (const object_id cq : std::vector<object_id>(wire_.overruns))
      if (context_of_[cq] == context.id) {
        expected.push_back(IBV_EVENT_CQ_ERR);
        ++seen_.overruns;
        wire_.overruns.erase(std::find(wire_.overruns.begin(), wire_.overruns.end(), cq));
      }
    std::vector<ibv_event_type> seen;
    while (const auto event = or_throw(get_async_event(context.owner)))
      seen.push_back((*event)->event_type);
    std::sort(expected.begin(), expected.end());
    std::sort(seen.begin(), seen.end());
    did("read async events of a context", context.id, seen.size());
    expect_equal(seen.size(), expected.size(), "async events");
    expect(seen == expected, "other async events than expected");
  }
}

void program::change_port() {
  const int device = static_cast<int>(below(2));
  bool& up = wire_.port_up[device];
  // Mostly up, or nothing would go on.
  const bool next = !up || !chance(2);
  if (up != next)
    for (const auto& context : contexts_)
      if (context.owner && device_of_[context.id] == device)
        port_events_[context.id].push_back(next ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
  up = next;
  did("port of a device, up", device, up);
  session_.set_port_state(device == 0 ? "sim0" : "sim1", 1, up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
  wire_.settle();
}

}  // namespace ibvxx::model_test
