// Memory windows of both types: binding, using, invalidating.
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

constexpr unsigned window_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr std::uint64_t window_offset = 4096;
constexpr std::uint64_t window_size = 4096;

/// The responder binds windows to its memory, the requester uses them.
struct windows : connection {
  using connection::connection;

  [[nodiscard]] ibv_mw_bind_info info(unsigned access = window_access) const {
    return {responder.memory.get(), responder.memory.address(window_offset), window_size, access};
  }
  [[nodiscard]] ibv_mw_bind bind(std::uint64_t id) const { return {id, IBV_SEND_SIGNALED, info()}; }
};

void allocation(const setting& s) {
  for (const int type : {0, 1, 2, 3}) {
    const auto mw = own(probe_pointer("alloc_mw-type-" + std::to_string(type), [&] {
      return ibv_alloc_mw(s.pd, static_cast<ibv_mw_type>(type));
    }));
    if (!mw) continue;
    probe("alloc_mw-type-" + std::to_string(type) + "-fields",
          std::string(mw->pd == s.pd ? "pd " : "other-pd ") + "type " + std::to_string(mw->type) +
              (mw->rkey != 0 ? " rkey set" : " rkey zero"));
  }
  ibv_mw* const mw = ibv_alloc_mw(s.pd, IBV_MW_TYPE_1);
  probe_code("dealloc_mw", [&] { return ibv_dealloc_mw(mw); });
}

/// Writes through a window's rkey: what the requester gets, on a connection of its own where it
/// fails.
std::string write_through(const setting& s, windows& c, std::uint32_t rkey, std::uint64_t offset,
                          std::size_t length) {
  request(77, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, length)})
      .remote(c.responder.memory.address(offset), rkey)
      .post(c.requester.qp.get());
  return completions(s, c.requester.cq.get(), 1);
}

void type_1(const setting& s) {
  windows c(s);
  ibv_qp* const qp = c.responder.qp.get();
  const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_1));
  const std::uint32_t before = mw->rkey;
  ibv_mw_bind bind = c.bind(1);
  probe_code("type-1-bind", [&] { return ibv_bind_mw(qp, mw.get(), &bind); });
  probe("type-1-bind-completion", completions(s, c.responder.cq.get(), 1));
  probe("type-1-bind-rkey", mw->rkey == before                 ? "kept"
                            : mw->rkey == ibv_inc_rkey(before) ? "incremented"
                                                               : "changed");
  probe("type-1-write", write_through(s, c, mw->rkey, window_offset, 64));
  probe("type-1-write-whole", write_through(s, c, mw->rkey, window_offset, window_size));
  probe("dereg_mr-with-window", code_name(ibv_dereg_mr(c.responder.memory.get())));
  probe("type-1-write-after-refused-dereg", write_through(s, c, mw->rkey, window_offset, 64));
  // Bound anew: the old key is dead.
  const std::uint32_t old = mw->rkey;
  bind.wr_id = 2;
  probe_code("type-1-rebind", [&] { return ibv_bind_mw(qp, mw.get(), &bind); });
  probe("type-1-rebind-completion", completions(s, c.responder.cq.get(), 1));
  probe("type-1-write-new-key", write_through(s, c, mw->rkey, window_offset, 64));
  probe("type-1-write-old-key", write_through(s, c, old, window_offset, 64));
}

void dealloc_bound(const setting& s) {
  windows c(s);
  ibv_mw* const mw = ibv_alloc_mw(s.pd, IBV_MW_TYPE_1);
  ibv_mw_bind bind = c.bind(1);
  ibv_bind_mw(c.responder.qp.get(), mw, &bind);
  collect(s, c.responder.cq.get(), 1);
  const std::uint32_t rkey = mw->rkey;
  probe_code("dealloc_mw-bound", [&] { return ibv_dealloc_mw(mw); });
  probe("type-1-write-deallocated", write_through(s, c, rkey, window_offset, 64));
}

void type_1_unbind(const setting& s) {
  windows c(s);
  const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_1));
  ibv_mw_bind bind = c.bind(1);
  ibv_bind_mw(c.responder.qp.get(), mw.get(), &bind);
  collect(s, c.responder.cq.get(), 1);
  bind.wr_id = 2;
  bind.bind_info.length = 0;
  probe_code("type-1-unbind", [&] { return ibv_bind_mw(c.responder.qp.get(), mw.get(), &bind); });
  probe("type-1-unbind-completion", completions(s, c.responder.cq.get(), 1));
  probe("type-1-write-unbound", write_through(s, c, mw->rkey, window_offset, 64));
}

void outside(const setting& s) {
  const struct {
    const char* name;
    std::uint64_t offset;
    std::size_t length;
  } uses[] = {{"before", window_offset - 1, 1},
              {"beyond", window_offset + window_size, 1},
              {"across-end", window_offset + window_size - 1, 2}};
  for (const auto& use : uses) {
    windows c(s);
    const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_1));
    ibv_mw_bind bind = c.bind(1);
    ibv_bind_mw(c.responder.qp.get(), mw.get(), &bind);
    collect(s, c.responder.cq.get(), 1);
    probe(std::string("type-1-write-") + use.name,
          write_through(s, c, mw->rkey, use.offset, use.length));
  }
}

/// A bind that may be refused at once or by its completion, on a connection of its own.
template <class Change>
void bind_1(const setting& s, const std::string& name, Change&& change) {
  windows c(s);
  const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_1));
  ibv_mw_bind bind = c.bind(1);
  change(bind, c);
  if (probe_code("type-1-bind-" + name,
                 [&] { return ibv_bind_mw(c.responder.qp.get(), mw.get(), &bind); }) == 0)
    probe("type-1-bind-" + name + "-completion", completions(s, c.responder.cq.get(), 1));
}

/// Binds a window of type 2 by a work request.
int post_bind(windows& c, ibv_mw* mw, std::uint32_t rkey, unsigned access = window_access) {
  request bind(1, IBV_WR_BIND_MW, {});
  bind.wr.bind_mw.mw = mw;
  bind.wr.bind_mw.rkey = rkey;
  bind.wr.bind_mw.bind_info = c.info(access);
  return bind.post(c.responder.qp.get());
}

/// The same for type 2.
void bind_2(const setting& s, const std::string& name, unsigned access) {
  windows c(s);
  const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_2));
  const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
  const int code = post_bind(c, mw.get(), rkey, access);
  probe("type-2-bind-" + name, code_name(code));
  if (code == 0)
    probe("type-2-bind-" + name + "-completion", completions(s, c.responder.cq.get(), 1));
}

void in_states(const setting& s) {
  const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_1));
  const region memory(s, 8192);
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_ERR}) {
    const auto cq = make_cq(s, 16);
    const auto qp = make_qp(s, cq.get());
    bring_to(s, qp.get(), state, qp->qp_num);
    ibv_mw_bind bind{1, IBV_SEND_SIGNALED, {memory.get(), memory.address(), 64, window_access}};
    const std::uint32_t before = mw->rkey;
    probe_code("type-1-bind-in-" + name(state),
               [&] { return ibv_bind_mw(qp.get(), mw.get(), &bind); });
    probe("type-1-bind-in-" + name(state) + "-rkey", mw->rkey == before ? "kept" : "changed");
    probe("type-1-bind-in-" + name(state) + "-completions",
          completions(s, cq.get(), state == IBV_QPS_ERR ? 1 : 0));
  }
}

void bad_binds(const setting& s) {
  bind_1(s, "beyond-mr", [](ibv_mw_bind& bind, windows&) { bind.bind_info.length = 1 << 20; });
  bind_1(s, "zero-based", [](ibv_mw_bind& bind, windows&) {
    bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
  });
  const struct {
    const char* name;
    unsigned flag;
  } flags[] = {{"local-write-access", IBV_ACCESS_LOCAL_WRITE},
               {"mw_bind-access", IBV_ACCESS_MW_BIND},
               {"on-demand-access", IBV_ACCESS_ON_DEMAND},
               {"hugetlb-access", IBV_ACCESS_HUGETLB},
               {"relaxed-ordering-access", IBV_ACCESS_RELAXED_ORDERING},
               {"unknown-access", 1U << 27}};
  for (const auto& one : flags) {
    bind_1(s, one.name,
           [&](ibv_mw_bind& bind, windows&) { bind.bind_info.mw_access_flags |= one.flag; });
    bind_2(s, one.name, window_access | one.flag);
  }
  bind_2(s, "zero-based", window_access | IBV_ACCESS_ZERO_BASED);
  bind_2(s, "no-access", 0);
  // Not probed: a bind without a region. The provider of rdma-core 44 dereferences the null
  // pointer.
  in_states(s);
  const region unbindable(s, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  bind_1(s, "mr-without-mw_bind", [&](ibv_mw_bind& bind, windows&) {
    bind.bind_info = {unbindable.get(), unbindable.address(), 4096, window_access};
  });
  const region constant(s, 8192, IBV_ACCESS_MW_BIND);
  bind_1(s, "write-on-read-only-mr", [&](ibv_mw_bind& bind, windows&) {
    bind.bind_info = {constant.get(), constant.address(), 4096, IBV_ACCESS_REMOTE_WRITE};
  });
  bind_1(s, "no-mr-with-length", [](ibv_mw_bind& bind, windows&) { bind.bind_info.mr = nullptr; });
  const auto pd = own(ibv_alloc_pd(s.context));
  setting other = s;
  other.pd = pd.get();
  const region foreign(other, 8192);
  bind_1(s, "other-pd", [&](ibv_mw_bind& bind, windows&) {
    bind.bind_info = {foreign.get(), foreign.address(), 4096, window_access};
  });
  windows c(s);
  const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_2));
  ibv_mw_bind bind = c.bind(1);
  probe_code("bind_mw-of-type-2",
             [&] { return ibv_bind_mw(c.responder.qp.get(), mw.get(), &bind); });
}

void type_2(const setting& s) {
  windows c(s);
  const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_2));
  const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
  probe("type-2-bind", code_name(post_bind(c, mw.get(), rkey)));
  probe("type-2-bind-completion", completions(s, c.responder.cq.get(), 1));
  probe("type-2-write", write_through(s, c, rkey, window_offset, 64));
  request invalidate(2, IBV_WR_LOCAL_INV, {});
  invalidate.wr.invalidate_rkey = rkey;
  probe("type-2-local-inv", code_name(invalidate.post(c.responder.qp.get())));
  probe("type-2-local-inv-completion", completions(s, c.responder.cq.get(), 1));
  probe("type-2-write-invalidated", write_through(s, c, rkey, window_offset, 64));
}

void send_with_invalidate(const setting& s) {
  windows c(s);
  const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_2));
  const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
  post_bind(c, mw.get(), rkey);
  collect(s, c.responder.cq.get(), 1);
  post_receive(c.responder.qp.get(), 5, {c.responder.memory.piece(0, 64)});
  request send(6, IBV_WR_SEND_WITH_INV, {c.requester.memory.piece(0, 64)});
  send.wr.invalidate_rkey = rkey;
  probe("send-with-inv", code_name(send.post(c.requester.qp.get())));
  probe("send-with-inv-sender", completions(s, c.requester.cq.get(), 1));
  const auto received = collect(s, c.responder.cq.get(), 1);
  probe("send-with-inv-receiver", received.empty() ? "nothing" : told(received[0]));
  if (!received.empty())
    probe("send-with-inv-rkey", received[0].invalidated_rkey == rkey ? "the one sent" : "another");
  probe("write-after-send-with-inv", write_through(s, c, rkey, window_offset, 64));
}

void bad_type_2(const setting& s) {
  const auto refused = [&](const std::string& name, auto&& post) {
    windows c(s);
    const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_2));
    const int code = post(c, mw.get());
    probe("type-2-" + name, code_name(code));
    if (code == 0) probe("type-2-" + name + "-completion", completions(s, c.responder.cq.get(), 1));
  };
  refused("bind-same-tag", [](windows& c, ibv_mw* mw) { return post_bind(c, mw, mw->rkey); });
  refused("bind-other-index",
          [](windows& c, ibv_mw* mw) { return post_bind(c, mw, ibv_inc_rkey(mw->rkey) + 0x100); });
  refused("bind-twice", [&](windows& c, ibv_mw* mw) {
    post_bind(c, mw, ibv_inc_rkey(mw->rkey));
    collect(s, c.responder.cq.get(), 1);
    return post_bind(c, mw, ibv_inc_rkey(ibv_inc_rkey(mw->rkey)));
  });
  refused("local-inv-unknown-key", [](windows& c, ibv_mw*) {
    request invalidate(2, IBV_WR_LOCAL_INV, {});
    invalidate.wr.invalidate_rkey = 0x7fffff01;
    return invalidate.post(c.responder.qp.get());
  });
  // Not probed: invalidating a window that is not bound. Linux 6.1 dereferences a null pointer.
  refused("local-inv-of-mr", [](windows& c, ibv_mw*) {
    request invalidate(2, IBV_WR_LOCAL_INV, {});
    invalidate.wr.invalidate_rkey = c.responder.memory->rkey;
    return invalidate.post(c.responder.qp.get());
  });
  // A window of type 2 belongs to the queue pair that bound it.
  windows c(s);
  windows d(s);
  const auto mw = own(ibv_alloc_mw(s.pd, IBV_MW_TYPE_2));
  const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
  post_bind(c, mw.get(), rkey);
  collect(s, c.responder.cq.get(), 1);
  request(77, IBV_WR_RDMA_WRITE, {d.requester.memory.piece(0, 64)})
      .remote(c.responder.memory.address(window_offset), rkey)
      .post(d.requester.qp.get());
  probe("type-2-write-through-other-qp", completions(s, d.requester.cq.get(), 1));
}

}  // namespace

void probe_window(const setting& s) {
  allocation(s);
  type_1(s);
  dealloc_bound(s);
  type_1_unbind(s);
  outside(s);
  bad_binds(s);
  type_2(s);
  send_with_invalidate(s);
  bad_type_2(s);
}

}  // namespace conformance
