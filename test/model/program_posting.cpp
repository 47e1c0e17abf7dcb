// The steps that post requests, good and bad ones.
#include <algorithm>
#include <array>
#include <ibvxx/or_throw.hpp>
#include <utility>

#include "program.hpp"

namespace ibvxx::model_test {

entry<unique_qp>* program::pick_working(bool sends) {
  const auto works = [&](object_id id) {
    const ibv_qp_state state = wire_.pairs.at(id).state;
    return state == IBV_QPS_RTS || (!sends && state == IBV_QPS_RTR);
  };
  auto* working = chance(8) ? nullptr : pick_if(qps_, works);
  return working ? working : pick(qps_);
}

const region* program::random_region(int device, object_id pd, std::size_t half, unsigned access) {
  const bool any = chance(40);
  std::vector<const region*> fitting;
  for (const auto& [id, one] : wire_.regions) {
    const bool fits = one.pd == pd && (one.access & access) == access &&
                      one.offset / (arena_size / 2) == half / (arena_size / 2);
    if (one.device == device && (fits || any)) fitting.push_back(&one);
  }
  return fitting.empty() ? nullptr : fitting[below(fitting.size())];
}

/// Where to put `length` bytes into a range: mostly inside, now and then just one byte out of it.
std::size_t program::place(std::size_t begin, std::size_t size, std::size_t length) {
  if (length > size) return begin;
  if (chance(40)) return begin + size - length + 1;
  if (begin != 0 && chance(80)) return begin - 1;
  return begin + below(size - length + 1);
}

/// One or two pieces of that many bytes together, mostly in a region of the queue pair's, in the
/// half that data leaves from or arrives in.
std::vector<piece> program::random_pieces(const queue_pair& qp, bool arriving, std::size_t total) {
  std::vector<piece> pieces;
  const std::size_t half = arriving ? arena_size / 2 : 0;
  const std::size_t first = chance(3) ? below(total + 1) : total;
  for (const std::size_t length : {first, total - first}) {
    if (length == 0 && !pieces.empty()) continue;
    const region* in =
        random_region(qp.device, qp.pd, half, arriving ? unsigned{IBV_ACCESS_LOCAL_WRITE} : 0U);
    piece one{half + below(arena_size / 2 - length + 1), length, unknown_key};
    if (in) one.key = in->key;
    if (in && in->offset / (arena_size / 2) == half / (arena_size / 2))
      one.offset = place(in->offset, in->length, length);
    if (chance(48)) one.key = unknown_key;
    pieces.push_back(one);
  }
  return pieces;
}

send program::random_send(const queue_pair& qp) {
  constexpr ibv_wr_opcode operations[] = {
      IBV_WR_SEND,      IBV_WR_SEND,      IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_WRITE_WITH_IMM,
      IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_BIND_MW,
      IBV_WR_LOCAL_INV};
  send r;
  r.wr_id = next_wr_id_++;
  r.opcode = operations[below(std::size(operations))];
  r.signaled = !chance(4);
  if (r.opcode == IBV_WR_LOCAL_INV) {
    // One that is not bound is an error, and as such not needed often.
    const bool any = chance(16);
    for (const auto& [id, one] : wire_.windows)
      if (one.device == qp.device && (any || one.bound != none)) r.key = one.key;
    if (r.key != 0) return r;
    r.opcode = IBV_WR_SEND;
  }
  const bool rebinds = chance(6);
  auto* const mw = r.opcode != IBV_WR_BIND_MW ? nullptr : pick_if(windows_, [&](object_id id) {
    const window& one = wire_.windows.at(id);
    return one.pd == qp.pd && (rebinds || one.bound == none);
  });
  if (mw) {
    const window& one = wire_.windows.at(mw->id);
    const region* in =
        random_region(qp.device, one.pd, below(2) * (arena_size / 2), IBV_ACCESS_MW_BIND);
    r.window = one.id;
    r.key = one.key;
    r.new_key = ::ibv_inc_rkey(one.key);
    r.region = in ? in->id : none;
    r.access =
        chance(2) ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    if (in) {
      r.length = 1 + below(in->length + (chance(8) ? 64 : 0));
      r.remote = in->offset + below(in->length - std::min(in->length, r.length) + 1);
    }
    if (in) return r;
  }
  if (r.opcode == IBV_WR_BIND_MW) r.opcode = IBV_WR_RDMA_WRITE;
  const bool atomic = r.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const bool reads = atomic || r.opcode == IBV_WR_RDMA_READ;
  const std::size_t total = atomic ? 8 : chance(8) ? 0 : 1 + below(64);
  r.pieces = random_pieces(qp, reads, total);
  r.add = random_();
  // The other side's memory: what is read there leaves, what is written arrives.
  const std::size_t half = reads && !atomic ? 0 : arena_size / 2;
  object_id pd = none;
  for (const auto& [id, one] : wire_.pairs)
    if (one.device == qp.peer_device && one.number == qp.peer) pd = one.pd;
  r.key = unknown_key;
  r.remote = half + below(arena_size / 2 - total + 1);
  const unsigned access = atomic  ? IBV_ACCESS_REMOTE_ATOMIC
                          : reads ? IBV_ACCESS_REMOTE_READ
                                  : IBV_ACCESS_REMOTE_WRITE;
  if (const region* in = random_region(qp.peer_device, pd, half, access)) {
    r.key = in->key;
    if (in->offset / (arena_size / 2) == half / (arena_size / 2))
      r.remote = place(in->offset, in->length, total);
  }
  if (chance(4))
    for (const auto& [id, one] : wire_.windows)
      if (one.device == qp.peer_device && one.bound != none &&
          one.offset / (arena_size / 2) == half / (arena_size / 2) && total <= one.length) {
        r.key = one.key;
        r.remote = place(one.offset, one.length, total);
      }
  if (chance(48)) r.key = unknown_key;
  if (atomic) r.remote = r.remote / 8 * 8;
  return r;
}

/// A list of one to three requests, of which one may be refused.
void program::post_sends() {
  auto* one = pick_working(true);
  if (!one) return;
  queue_pair& qp = wire_.pairs.at(one->id);
  const std::size_t count = chance(4) ? 2 + below(2) : 1;
  std::vector<send> requests;
  for (std::size_t i = 0; i < count; ++i) requests.push_back(random_send(qp));
  // A window that an earlier one of the list binds has another key for a later one: once is enough.
  for (std::size_t i = 1; i < count; ++i)
    if (requests[i].opcode == IBV_WR_BIND_MW) requests[i] = requests[0];
  const std::size_t bad = chance(16) ? below(count) : count;
  std::array<std::array<ibv_sge, 4>, 3> pieces{};
  std::array<ibv_send_wr, 3> list{};
  for (std::size_t i = 0; i < count; ++i) {
    const send& r = requests[i];
    ibv_send_wr& wr = list[i];
    for (std::size_t p = 0; p < r.pieces.size(); ++p)
      pieces[i][p] = {address(r.pieces[p].offset), static_cast<std::uint32_t>(r.pieces[p].length),
                      r.pieces[p].key};
    wr.wr_id = r.wr_id;
    wr.next = i + 1 < count ? &list[i + 1] : nullptr;
    wr.sg_list = pieces[i].data();
    wr.num_sge = i == bad ? 4 : static_cast<int>(r.pieces.size());
    wr.opcode = r.opcode;
    wr.send_flags = r.signaled ? IBV_SEND_SIGNALED : 0;
    if (r.opcode == IBV_WR_LOCAL_INV) {
      wr.invalidate_rkey = r.key;
    } else if (r.opcode == IBV_WR_BIND_MW) {
      ibv_mr* mr = nullptr;
      for (auto& real : regions_)
        if (real.id == r.region) mr = real.owner.get();
      for (auto& real : windows_)
        if (real.id == r.window) {
          real.owner->rkey = r.key;  // the program's own copy
          wr.bind_mw = {real.owner.get(), r.new_key, {mr, address(r.remote), r.length, r.access}};
        }
    } else if (r.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic.remote_addr = address(r.remote);
      wr.wr.atomic.rkey = r.key;
      wr.wr.atomic.compare_add = r.add;
    } else {
      wr.wr.rdma.remote_addr = address(r.remote);
      wr.wr.rdma.rkey = r.key;
    }
    did("post (wr, opcode, bytes, QP)", r.wr_id, r.opcode, r.total(), one->id);
  }
  const int injected = maybe_inject(verb::post_send);
  const bool sends = qp.state == IBV_QPS_RTS || qp.state == IBV_QPS_ERR;
  int expected = injected != 0 ? injected : sends ? 0 : EINVAL;
  std::size_t taken = 0;
  const ibv_send_wr* expected_bad = injected != 0 ? list.data() : nullptr;
  if (expected == 0) {
    for (; taken < count && expected == 0; ++taken) {
      expected = taken == bad ? EINVAL : wire_.post(qp, requests[taken]);
      if (expected != 0) expected_bad = &list[taken];
    }
    wire_.settle();
  }
  ibv_send_wr* named = nullptr;
  const auto posted = post_send(one->owner, list.data(), &named);
  expect_equal(posted ? 0 : posted.error().code(), expected, "post_send said");
  expect(named == expected_bad, "bad_wr names another request");
}

void program::post_receives() {
  receive r;
  r.wr_id = next_wr_id_++;
  auto* srq = chance(8) ? pick(srqs_) : nullptr;
  auto* one = srq ? nullptr : pick_working(false);
  if (!srq && !one) return;
  queue_pair standing_for;  // whose memory the pieces are in
  if (srq) {
    standing_for.pd = wire_.shared.at(srq->id).pd;
    standing_for.device = device_of_[standing_for.pd];
  } else {
    standing_for = wire_.pairs.at(one->id);
  }
  r.pieces = random_pieces(standing_for, true, chance(4) ? below(64) : 64);
  std::array<ibv_sge, 2> pieces{};
  for (std::size_t p = 0; p < r.pieces.size(); ++p)
    pieces[p] = {address(r.pieces[p].offset), static_cast<std::uint32_t>(r.pieces[p].length),
                 r.pieces[p].key};
  ibv_recv_wr wr{r.wr_id, nullptr, pieces.data(), static_cast<int>(r.pieces.size())};
  const int injected = maybe_inject(srq ? verb::post_srq_recv : verb::post_recv);
  const int expected = injected != 0 ? injected
                       : srq         ? wire_.post(wire_.shared.at(srq->id), r)
                                     : wire_.post(wire_.pairs.at(one->id), r);
  wire_.settle();
  const auto posted = srq ? post_srq_recv(srq->owner, &wr) : post_recv(one->owner, &wr);
  did("post a receive (wr, QP or SRQ)", r.wr_id, srq ? srq->id : one->id);
  expect_equal(posted ? 0 : posted.error().code(), expected, "post_recv said");
}

}  // namespace ibvxx::model_test
