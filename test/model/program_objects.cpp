// The steps that make, move and destroy objects.
#include <algorithm>
#include <ibvxx/or_throw.hpp>
#include <utility>

#include "program.hpp"
#include "support/teardown.hpp"

namespace ibvxx::model_test {
namespace {

[[nodiscard]] context_config composed() {
  context_config chosen;
  chosen.device_name = program::device_names[0];
  chosen.comp_channels = 2;
  chosen.cqs = 3;
  chosen.cqe = 8;
  return chosen;
}

}  // namespace

/// What a creation gave, against what it had to give. The new object's number, or none.
template <class Owner>
object_id program::adopt(std::vector<entry<Owner>>& all, result<Owner> made, int injected,
                         object_kind kind, std::initializer_list<object_id> parents) {
  did("make (kind, made)", kind, made.has_value());
  if (injected != 0) {
    expect(!made && made.error().code() == injected, "an injected failure was not told");
    return none;
  }
  if (!made) disagree(std::string("refused: ") + made.error().message());
  const object_id id = objects_.add(kind, parents);
  auto empty = std::find_if(all.begin(), all.end(), [](const auto& one) { return !one.owner; });
  if (empty == all.end()) empty = all.insert(all.end(), entry<Owner>{});
  empty->owner = std::move(*made);
  empty->id = id;
  return id;
}

void program::open_context() {
  if (objects_.count(object_kind::context) >= 3) return;
  const int device = static_cast<int>(below(2));
  const int injected = maybe_inject(verb::open_device);
  auto list = or_throw(get_device_list());
  const object_id id = adopt(contexts_, open_device(list.find(device_names[device])), injected,
                             object_kind::context, {});
  if (id == none) return;
  device_of_[id] = device;
  port_events_[id] = {};
  for (auto& one : contexts_)
    if (one.id == id) or_throw(set_nonblocking(one.owner->async_fd));
}

void program::make_pd() {
  auto* context = pick(contexts_);
  if (!context || objects_.count(object_kind::pd) >= 4) return;
  const int injected = maybe_inject(verb::alloc_pd);
  const object_id id =
      adopt(pds_, alloc_pd(context->owner), injected, object_kind::pd, {context->id});
  if (id == none) return;
  device_of_[id] = device_of_[context->id];
  context_of_[id] = context->id;
}

void program::make_channel() {
  auto* context = pick(contexts_);
  if (!context || objects_.count(object_kind::comp_channel) >= 3) return;
  const int injected = maybe_inject(verb::create_comp_channel);
  const object_id id = adopt(channels_, create_comp_channel(context->owner), injected,
                             object_kind::comp_channel, {context->id});
  if (id == none) return;
  context_of_[id] = context->id;
  for (auto& one : channels_)
    if (one.id == id) or_throw(set_nonblocking(one.owner->fd));
}

void program::make_cq() {
  auto* context = pick(contexts_);
  if (!context || objects_.count(object_kind::cq) >= 6) return;
  auto* channel = chance(3) ? nullptr : pick(channels_);
  if (channel && context_of_[channel->id] != context->id) channel = nullptr;
  const int asked = static_cast<int>(chance(10) ? 1 + below(4) : 32 + below(96));
  const int injected = maybe_inject(verb::create_cq);
  const object_id id =
      adopt(cqs_, create_cq(context->owner, asked, channel ? channel->owner.get() : nullptr),
            injected, object_kind::cq, {context->id, channel ? channel->id : none});
  if (id == none) return;
  std::size_t capacity = 1;
  while (capacity < static_cast<std::size_t>(asked)) capacity = capacity * 2 + 1;
  context_of_[id] = context->id;
  channel_of_[id] = channel ? channel->id : none;
  wire_.queues[id] = {id, context->id, capacity, {}, false, channel != nullptr, 0};
  for (auto& one : cqs_)
    if (one.id == id) expect(one.owner->cqe == static_cast<int>(capacity), "a CQ has another size");
}

void program::make_region() {
  auto* pd = pick(pds_);
  if (!pd || objects_.count(object_kind::mr) >= 16) return;
  const std::size_t half = below(2) * (arena_size / 2);
  const std::size_t offset = half + below(24) * 64;
  const std::size_t length = 64 + below(arena_size / 2 - (offset - half) - 64 + 1);
  constexpr int all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                      IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE;
  const int access = !chance(6)  ? all
                     : chance(2) ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND
                                 : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const int injected = maybe_inject(verb::reg_mr);
  const object_id id = adopt(regions_, reg_mr(pd->owner, memory_.data() + offset, length, access),
                             injected, object_kind::mr, {pd->id});
  if (id == none) return;
  region& one = wire_.regions[id];
  one.id = id;
  one.pd = pd->id;
  one.device = device_of_[pd->id];
  one.offset = offset;
  one.length = length;
  one.access = static_cast<unsigned>(access);
  for (auto& real : regions_)
    if (real.id == id) one.key = real.owner->rkey;
}

void program::make_window() {
  auto* pd = pick(pds_);
  if (!pd || objects_.count(object_kind::mw) >= 4) return;
  const int injected = maybe_inject(verb::alloc_mw);
  const object_id id =
      adopt(windows_, alloc_mw(pd->owner, IBV_MW_TYPE_2), injected, object_kind::mw, {pd->id});
  if (id == none) return;
  window& one = wire_.windows[id];
  one.id = id;
  one.pd = pd->id;
  one.device = device_of_[pd->id];
  for (auto& real : windows_)
    if (real.id == id) one.key = real.owner->rkey;
}

void program::make_srq() {
  auto* pd = pick(pds_);
  if (!pd || objects_.count(object_kind::srq) >= 2) return;
  ibv_srq_init_attr wanted{nullptr, {7, 2, 0}};
  const int injected = maybe_inject(verb::create_srq);
  const object_id id =
      adopt(srqs_, create_srq(pd->owner, wanted), injected, object_kind::srq, {pd->id});
  if (id == none) return;
  context_of_[id] = context_of_[pd->id];
  wire_.shared[id] = {id, pd->id, 7, {}};
}

void program::make_qp() {
  auto* pd = pick(pds_);
  if (!pd || objects_.count(object_kind::qp) >= 8) return;
  const object_id context = context_of_[pd->id];
  const auto in_context = [&](object_id id) { return context_of_[id] == context; };
  auto* send_cq = pick_if(cqs_, in_context);
  auto* recv_cq = pick_if(cqs_, in_context);
  if (!send_cq) return;
  auto* srq = chance(4) ? pick_if(srqs_, in_context) : nullptr;
  const std::uint32_t sends = chance(2) ? 3 : 15, receives = chance(2) ? 3 : 15;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = send_cq->owner.get();
  wanted.recv_cq = recv_cq->owner.get();
  wanted.srq = srq ? srq->owner.get() : nullptr;
  wanted.cap = {sends, receives, 2, 2, 0};
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = chance(3) ? 1 : 0;
  const bool signal_all = wanted.sq_sig_all != 0;
  const int injected = maybe_inject(verb::create_qp);
  const object_id id = adopt(
      qps_, create_qp(pd->owner, wanted), injected, object_kind::qp,
      {pd->id, send_cq->id, recv_cq->id == send_cq->id ? none : recv_cq->id, srq ? srq->id : none});
  if (id == none) return;
  queue_pair& one = wire_.pairs[id];
  one.id = id;
  one.pd = pd->id;
  one.send_cq = send_cq->id;
  one.recv_cq = recv_cq->id;
  one.srq = srq ? srq->id : none;
  one.device = device_of_[pd->id];
  one.signal_all = signal_all;
  one.send_capacity = sends;
  one.recv_capacity = receives;
  for (auto& real : qps_)
    if (real.id == id) one.number = real.owner->qp_num;
}

void program::make_ah() {
  auto* pd = pick(pds_);
  if (!pd || objects_.count(object_kind::ah) >= 3) return;
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.sgid_index = 1;
  path.grh.dgid = shim::gid("::ffff:10.0.0.10");
  if (!wire_.port_up[device_of_[pd->id]]) {
    expect(create_ah(pd->owner, path).error().code() == ENETUNREACH, "a way without a link");
    return;
  }
  const int injected = maybe_inject(verb::create_ah);
  adopt(ahs_, create_ah(pd->owner, path), injected, object_kind::ah, {pd->id});
}

/// The model's part of a destroy that succeeded.
void program::forget(object_id id, object_kind kind) {
  if (kind == object_kind::cq) {
    std::erase(wire_.overruns, id);  // events that name it go with it
    wire_.queues.erase(id);
  }
  if (kind == object_kind::context) port_events_.erase(id);
  if (kind == object_kind::mr) wire_.regions.erase(id);
  if (kind == object_kind::srq) wire_.shared.erase(id);
  if (kind == object_kind::mw) {
    wire_.unbind(wire_.windows.at(id));
    wire_.windows.erase(id);
  }
  if (kind == object_kind::qp) wire_.destroy_pair(id);
  objects_.remove(id);
  wire_.settle();
}

template <class Owner>
void program::destroy(entry<Owner>& one, object_kind kind) {
  // ibv_close_device takes no notice of children, and leaves them dangling: not here.
  if (kind == object_kind::context && objects_.in_use(one.id)) return;
  constexpr bool closes = std::is_same_v<Owner, unique_context>;
  const int injected = closes ? 0 : maybe_inject(Owner::deleter_type::call);
  const bool windows = kind == object_kind::mr && wire_.regions.at(one.id).windows != 0;
  const int expected = injected != 0             ? injected
                       : objects_.in_use(one.id) ? EBUSY
                       : windows                 ? EINVAL
                                                 : 0;
  if (injected == 0 && expected != 0) {
    ++objects_.findings[finding_kind::destroyed_in_use];
    ++seen_.refused_destroys;
  }
  [[maybe_unused]] auto* const handle = one.owner.get();
  const auto gone = one.owner.reset();
  did("destroy (kind, object, said)", kind, one.id, gone ? 0 : gone.error().code());
  expect_equal(gone ? 0 : gone.error().code(), expected, "a destroy said");
  expect(static_cast<bool>(one.owner) == (expected != 0), "an owner forgot, or kept what is gone");
  if (expected != 0) return;
  if constexpr (std::is_same_v<Owner, unique_cq>) dead_cqs_.push_back(handle);
  forget(std::exchange(one.id, none), kind);
}

void program::destroy_something() {
  const auto one_of = [this](auto& all, object_kind kind) {
    if (auto* one = pick(all)) destroy(*one, kind);
  };
  switch (below(16)) {
    case 0:
      return one_of(contexts_, object_kind::context);
    case 1:
      return one_of(pds_, object_kind::pd);
    case 2:
      return one_of(channels_, object_kind::comp_channel);
    case 3:
    case 4:
      return one_of(cqs_, object_kind::cq);
    case 5:
    case 6:
    case 7:
      return one_of(regions_, object_kind::mr);
    case 8:
    case 9:
      return one_of(windows_, object_kind::mw);
    case 10:
      return one_of(srqs_, object_kind::srq);
    case 11:
      return one_of(ahs_, object_kind::ah);
    default:
      return one_of(qps_, object_kind::qp);
  }
}

/// Moves one owner onto another, or onto itself: what was owned there is destroyed, or, where that
/// fails, reported to the teardown handler and given up.
template <class Owner>
void program::move(std::vector<entry<Owner>>& all, object_kind kind) {
  auto* from = pick(all);
  if (!from) return;
  entry<Owner>& to = all[below(all.size())];
  did("move (kind, object, onto)", kind, from->id, to.id);
  if (&to == from) {
    Owner& same = to.owner;
    to.owner = std::move(same);
    expect(static_cast<bool>(to.owner), "a self-move lost the object");
    return;
  }
  auto* const moved = from->owner.get();
  if (to.owner) {
    // Only what may go: a given-up object would be a leak, which is no finding to look for here.
    const bool windows = kind == object_kind::mr && wire_.regions.at(to.id).windows != 0;
    if (objects_.in_use(to.id) || windows) return;
    if constexpr (std::is_same_v<Owner, unique_cq>) dead_cqs_.push_back(to.owner.get());
  }
  const test::teardown_catcher caught;
  to.owner = std::move(from->owner);
  expect(caught.count() == 0, "a move could not destroy what was there");
  expect(to.owner.get() == moved && !from->owner, "a move did not move");
  const object_id gone = std::exchange(to.id, std::exchange(from->id, none));
  if (gone != none) forget(gone, kind);
}

void program::move_something() {
  switch (below(6)) {
    case 0:
      return move(contexts_, object_kind::context);
    case 1:
      return move(pds_, object_kind::pd);
    case 2:
      return move(cqs_, object_kind::cq);
    case 3:
      return move(regions_, object_kind::mr);
    case 4:
      return move(windows_, object_kind::mw);
    default:
      return move(qps_, object_kind::qp);
  }
}

/// A composed context, with one failure somewhere: it owns everything or nothing.
void program::compose_context() {
  const std::size_t before = session_.live();
  constexpr verb steps[] = {
      verb::open_device,   verb::query_device, verb::query_port,          verb::alloc_pd,
      verb::epoll_create1, verb::epoll_ctl,    verb::create_comp_channel, verb::create_cq,
      verb::req_notify_cq};
  const verb failing = steps[below(std::size(steps))];
  session_.fail(failing).nth(1 + below(4)).with(ENOMEM);
  did("open a composed context while this verb fails", failing);
  {
    rdma_context context(composed());
    const auto enabled = context.enable();
    session_.clear_rules();
    expect(enabled || session_.live() == before, "a context that failed to open kept something");
    if (!enabled) expect(context.state() == context_state::disabled, "half a context");
    if (enabled && chance(2)) {
      session_.fail(verb::destroy_cq).nth(1 + below(3)).with(EBUSY);
      const auto first = context.reset();
      session_.clear_rules();
      expect(!first && context.state() == context_state::releasing, "a reset hid its failure");
    }
    const auto reset = context.reset();
    expect(reset.has_value(), "a context could not be released");
  }
  expect(session_.live() == before, "a composed context left something");
}

void program::use_a_dead_handle() {
  if (dead_cqs_.empty()) return;
  ibv_cq* const cq = dead_cqs_[below(dead_cqs_.size())];
  did("use a CQ that is gone");
  ibv_wc wc{};
  switch (below(3)) {
    case 0:
      ++objects_.findings[finding_kind::double_destroy];
      return expect(::ibv_destroy_cq(cq) == EINVAL, "a double destroy");
    case 1:
      ++objects_.findings[finding_kind::use_after_destroy];
      return expect(::ibv_req_notify_cq(cq, 0) == EINVAL, "arming a CQ that is gone");
    default:
      ++objects_.findings[finding_kind::use_after_destroy];
      return expect(::ibv_poll_cq(cq, 1, &wc) == -1, "polling a CQ that is gone");
  }
}

}  // namespace ibvxx::model_test
