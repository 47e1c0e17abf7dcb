#include "wire.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ibvxx::model_test {
namespace {

[[nodiscard]] bool inside(std::size_t offset, std::size_t length, std::size_t begin,
                          std::size_t size) {
  return offset >= begin && offset + length <= begin + size;
}

[[nodiscard]] ibv_wc_opcode completed_as(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return IBV_WC_SEND;
  }
}

[[nodiscard]] unsigned access_for(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_ACCESS_REMOTE_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_ACCESS_REMOTE_READ;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_ACCESS_REMOTE_ATOMIC;
    default:
      return 0;
  }
}

[[nodiscard]] bool answers_with_data(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

[[nodiscard]] bool takes_a_receive(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

}  // namespace

const region* wire::find_region(int device, std::uint32_t key) const {
  for (const auto& [id, one] : regions)
    if (one.device == device && one.key == key) return &one;
  return nullptr;
}

wire::verdict wire::check_local(const queue_pair& qp, object_id pd,
                                const std::vector<piece>& pieces, bool writable,
                                std::size_t needed) const {
  for (const piece& one : pieces) {
    if (needed == 0) break;
    if (one.length == 0) continue;
    const region* found = find_region(qp.device, one.key);
    if (!found || found->pd != pd) return verdict::unknown;
    if (writable && (found->access & IBV_ACCESS_LOCAL_WRITE) == 0) return verdict::read_only;
    if (!inside(one.offset, one.length, found->offset, found->length)) return verdict::outside;
    needed -= std::min(needed, one.length);
  }
  return verdict::fine;
}

bool wire::may_reach(const queue_pair& peer, const send& r, std::size_t length,
                     unsigned access) const {
  if (const region* found = find_region(peer.device, r.key))
    return found->pd == peer.pd && (found->access & access) != 0 &&
           inside(r.remote, length, found->offset, found->length);
  for (const auto& [id, one] : windows)
    if (one.device == peer.device && one.key == r.key)
      return one.bound != none && one.through == peer.id && (one.access & access) != 0 &&
             inside(r.remote, length, one.offset, one.length);
  return false;
}

queue_pair* wire::peer_of(const queue_pair& qp) {
  if (!port_up[qp.device] || !port_up[qp.peer_device]) return nullptr;
  for (auto& [id, one] : pairs)
    if (one.device == qp.peer_device && one.number == qp.peer)
      return one.state == IBV_QPS_RTR || one.state == IBV_QPS_RTS ? &one : nullptr;
  return nullptr;
}

std::deque<receive>* wire::receives_of(queue_pair& qp) {
  return qp.srq == none ? &qp.receives : &shared.at(qp.srq).receives;
}

int wire::post(queue_pair& qp, const send& request) {
  if (qp.sends.size() >= qp.send_capacity) return ENOMEM;
  if (qp.state == IBV_QPS_ERR) {
    finish(qp, request, IBV_WC_WR_FLUSH_ERR);
    return 0;
  }
  if (qp.sends.empty()) {
    executing_ = qp.id;
    const bool done = execute(qp, request);
    executing_ = none;
    if (done) return 0;
  }
  qp.sends.push_back(request);
  if (std::find(waiting_.begin(), waiting_.end(), qp.id) == waiting_.end())
    waiting_.push_back(qp.id);
  return 0;
}

int wire::post(queue_pair& qp, const receive& request) {
  if (qp.srq != none || qp.state == IBV_QPS_RESET) return EINVAL;
  if (qp.receives.size() >= qp.recv_capacity) return ENOMEM;
  qp.receives.push_back(request);
  return 0;
}

int wire::post(shared_queue& srq, const receive& request) {
  if (srq.receives.size() >= srq.capacity) return ENOMEM;
  srq.receives.push_back(request);
  return 0;
}

void wire::enter(queue_pair& qp, ibv_qp_state state) {
  if (state == IBV_QPS_ERR) {
    if (qp.state == IBV_QPS_ERR) flush_receives(qp);
    break_pair(qp);
    return;
  }
  qp.state = state;
  if (state != IBV_QPS_RESET) return;
  qp.sends.clear();
  qp.receives.clear();
  std::erase(waiting_, qp.id);
}

void wire::destroy_pair(object_id id) {
  std::erase(waiting_, id);
  pairs.erase(id);
}

void wire::unbind(window& one) {
  if (one.bound != none) --regions.at(one.bound).windows;
  one.bound = one.through = none;
}

void wire::settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (const object_id id : std::vector<object_id>(waiting_)) {
      const auto found = pairs.find(id);
      if (found == pairs.end()) continue;
      queue_pair& qp = found->second;
      while (!qp.sends.empty() && qp.state == IBV_QPS_RTS) {
        executing_ = id;
        const bool done = execute(qp, send(qp.sends.front()));
        executing_ = none;
        if (!done) break;
        qp.sends.pop_front();
        moved = true;
      }
      if (qp.sends.empty()) std::erase(waiting_, id);
    }
  }
}

bool wire::execute(queue_pair& qp, const send& r) {
  if (r.opcode == IBV_WR_BIND_MW) return bind(qp, r);
  if (r.opcode == IBV_WR_LOCAL_INV) return invalidate(qp, r);
  if (!port_up[qp.device]) return finish(qp, r, IBV_WC_LOC_QP_OP_ERR);
  if (!answers_with_data(r.opcode)) {
    const verdict local = check_local(qp, qp.pd, r.pieces, false, r.total());
    if (local == verdict::unknown) return finish(qp, r, IBV_WC_LOC_QP_OP_ERR);
    if (local != verdict::fine) return finish(qp, r, IBV_WC_LOC_PROT_ERR);
  }
  queue_pair* peer = peer_of(qp);
  // Every connection has packet numbers of its own: those of another are out of sequence.
  if (!peer || peer->next_expected != qp.next_sent) return finish(qp, r, IBV_WC_RETRY_EXC_ERR);
  return carry(qp, *peer, r);
}

bool wire::carry(queue_pair& qp, queue_pair& peer, const send& r) {
  const auto refuse = [&](ibv_wc_status status) {
    break_pair(peer);
    return finish(qp, r, status);
  };
  const unsigned access = access_for(r.opcode);
  if (access != 0 && (peer.access & access) == 0) return refuse(IBV_WC_REM_INV_REQ_ERR);
  if (takes_a_receive(r.opcode) && receives_of(peer)->empty()) {
    if (qp.waits_for_ever) return false;
    return finish(qp, r, IBV_WC_RNR_RETRY_EXC_ERR);
  }
  const bool atomic = r.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const std::size_t length = atomic ? 8 : r.total();
  if (access != 0 && length != 0 && !may_reach(peer, r, length, access)) {
    if (takes_a_receive(r.opcode)) {
      const std::uint64_t taken = receives_of(peer)->front().wr_id;
      receives_of(peer)->pop_front();
      complete(peer.recv_cq, {taken, IBV_WC_REM_ACCESS_ERR, {}, 0, peer.number});
    }
    return refuse(IBV_WC_REM_ACCESS_ERR);
  }
  if (answers_with_data(r.opcode)) {
    std::vector<unsigned char> bytes(
        arena.begin() + static_cast<std::ptrdiff_t>(r.remote),
        arena.begin() + static_cast<std::ptrdiff_t>(r.remote + length));
    if (length == 0) bytes.clear();
    if (atomic) {
      std::uint64_t word = 0;
      std::memcpy(&word, arena.data() + r.remote, sizeof word);
      word += r.add;
      std::memcpy(arena.data() + r.remote, &word, sizeof word);
    }
    // The peer has answered: only the requester breaks where the answer finds no place.
    if (check_local(qp, qp.pd, r.pieces, true, length) != verdict::fine)
      return finish(qp, r, IBV_WC_LOC_PROT_ERR);
    scatter(r.pieces, bytes);
    ++qp.next_sent;
    ++peer.next_expected;
    return finish(qp, r, IBV_WC_SUCCESS);
  }
  if (access != 0) {
    const std::vector<unsigned char> bytes = gather(r.pieces);
    std::copy(bytes.begin(), bytes.end(), arena.begin() + static_cast<std::ptrdiff_t>(r.remote));
  }
  if (takes_a_receive(r.opcode)) return deliver(qp, peer, r);
  ++qp.next_sent;
  ++peer.next_expected;
  return finish(qp, r, IBV_WC_SUCCESS);
}

bool wire::deliver(queue_pair& qp, queue_pair& peer, const send& r) {
  std::deque<receive>& receives = *receives_of(peer);
  const receive taken = receives.front();
  receives.pop_front();
  const bool has_data = r.opcode == IBV_WR_SEND;
  if (has_data && r.total() != 0) {
    std::size_t room = 0;
    for (const piece& one : taken.pieces) room += one.length;
    const object_id pd = peer.srq == none ? peer.pd : shared.at(peer.srq).pd;
    if (room < r.total() || check_local(peer, pd, taken.pieces, true, r.total()) != verdict::fine) {
      complete(peer.recv_cq, {taken.wr_id, IBV_WC_LOC_QP_OP_ERR, {}, 0, peer.number});
      break_pair(peer);
      return finish(qp, r, IBV_WC_REM_OP_ERR);
    }
    scatter(taken.pieces, gather(r.pieces));
  }
  if (!complete(peer.recv_cq,
                {taken.wr_id, IBV_WC_SUCCESS, has_data ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
                 r.total(), peer.number})) {
    break_pair(peer);  // it cannot say what it received, and does not answer
    return finish(qp, r, IBV_WC_RETRY_EXC_ERR);
  }
  ++qp.next_sent;
  ++peer.next_expected;
  return finish(qp, r, IBV_WC_SUCCESS);
}

bool wire::bind(queue_pair& qp, const send& r) {
  const auto one = windows.find(r.window);
  const auto target = regions.find(r.region);
  constexpr unsigned writers = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  const bool fits =
      one != windows.end() && target != regions.end() && one->second.key == r.key &&
      one->second.bound == none && one->second.pd == qp.pd && r.length != 0 &&
      (target->second.access & IBV_ACCESS_MW_BIND) != 0 &&
      ((r.access & writers) == 0 || (target->second.access & IBV_ACCESS_LOCAL_WRITE) != 0) &&
      inside(r.remote, r.length, target->second.offset, target->second.length);
  if (!fits) return finish(qp, r, IBV_WC_MW_BIND_ERR);
  window& bound = one->second;
  bound.bound = r.region;
  bound.through = qp.id;
  bound.offset = r.remote;
  bound.length = r.length;
  bound.access = r.access;
  bound.key = r.new_key;
  ++target->second.windows;
  return finish(qp, r, IBV_WC_SUCCESS);
}

bool wire::invalidate(queue_pair& qp, const send& r) {
  for (auto& [id, one] : windows)
    if (one.device == qp.device && one.key == r.key && one.bound != none) {
      unbind(one);
      return finish(qp, r, IBV_WC_SUCCESS);
    }
  return finish(qp, r, IBV_WC_LOC_QP_OP_ERR);
}

bool wire::finish(queue_pair& qp, const send& r, ibv_wc_status status) {
  if (status != IBV_WC_SUCCESS || r.signaled || qp.signal_all)
    complete(qp.send_cq, {r.wr_id, status, completed_as(r.opcode), r.total(), qp.number});
  if (status != IBV_WC_SUCCESS) break_pair(qp);
  return true;
}

void wire::break_pair(queue_pair& qp) {
  if (qp.state == IBV_QPS_ERR) return;
  qp.state = IBV_QPS_ERR;
  std::erase(waiting_, qp.id);
  // The one in progress has completed, or will.
  const bool first_stays = executing_ == qp.id && !qp.sends.empty();
  const std::deque<send> flushed(qp.sends.begin() + (first_stays ? 1 : 0), qp.sends.end());
  qp.sends.erase(qp.sends.begin() + (first_stays ? 1 : 0), qp.sends.end());
  for (const send& one : flushed)
    complete(qp.send_cq, {one.wr_id, IBV_WC_WR_FLUSH_ERR, {}, 0, qp.number});
  flush_receives(qp);
}

void wire::flush_receives(queue_pair& qp) {
  for (; !qp.receives.empty(); qp.receives.pop_front())
    complete(qp.recv_cq, {qp.receives.front().wr_id, IBV_WC_WR_FLUSH_ERR, {}, 0, qp.number});
}

bool wire::complete(object_id cq, const completion& one) {
  queue& to = queues.at(cq);
  if (to.entries.size() >= to.capacity) {
    overruns.push_back(cq);
    return false;
  }
  to.entries.push_back(one);
  if (to.armed) {
    to.armed = false;
    if (to.has_channel) ++to.events;
  }
  return true;
}

void wire::scatter(const std::vector<piece>& pieces, const std::vector<unsigned char>& bytes) {
  std::size_t done = 0;
  for (const piece& one : pieces) {
    const std::size_t length = std::min(one.length, bytes.size() - done);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(done), length,
                arena.begin() + static_cast<std::ptrdiff_t>(one.offset));
    done += length;
  }
}

std::vector<unsigned char> wire::gather(const std::vector<piece>& pieces) const {
  std::vector<unsigned char> bytes;
  for (const piece& one : pieces)
    bytes.insert(bytes.end(), arena.begin() + static_cast<std::ptrdiff_t>(one.offset),
                 arena.begin() + static_cast<std::ptrdiff_t>(one.offset + one.length));
  return bytes;
}

}  // namespace ibvxx::model_test
