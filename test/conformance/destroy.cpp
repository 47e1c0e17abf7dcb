// Destroys while something still needs the object, twice, and then without it.
#include <arpa/inet.h>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

/// A destroy, with what became of errno also where it succeeded.
std::string told(int code) {
  const int now = errno;
  return code_name(code) + ", errno " + errno_state(now);
}

template <class Destroy>
void twice(const std::string& name, Destroy&& destroy) {
  errno = untouched;
  probe(name, told(destroy()));
  errno = untouched;
  probe(name + "-again", told(destroy()));
}

template <class Destroy>
void once(const std::string& name, Destroy&& destroy) {
  errno = untouched;
  probe(name, told(destroy()));
}

void pd(const setting& s) {
  ibv_pd* const pd = ibv_alloc_pd(s.context);
  const auto holds = [&](const std::string& what, auto* child, auto&& destroy) {
    need(child != nullptr, what.c_str());
    twice("pd-with-" + what, [&] { return ibv_dealloc_pd(pd); });
    once(what, [&] { return destroy(child); });
  };
  static unsigned char memory[4096];
  holds("mr", ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE),
        [](ibv_mr* mr) { return ibv_dereg_mr(mr); });
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2})
    holds("mw-" + std::to_string(type), ibv_alloc_mw(pd, type),
          [](ibv_mw* mw) { return ibv_dealloc_mw(mw); });
  const auto cq = make_cq(s, 4);
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq.get();
    attr.cap = {1, 1, 1, 1, 0};
    attr.qp_type = type;
    holds("qp-" + name(type), ibv_create_qp(pd, &attr),
          [](ibv_qp* qp) { return ibv_destroy_qp(qp); });
  }
  ibv_srq_init_attr wanted{};
  wanted.attr = {4, 1, 0};
  holds("srq", ibv_create_srq(pd, &wanted), [](ibv_srq* srq) { return ibv_destroy_srq(srq); });
  ibv_ah_attr address{};
  address.is_global = 1;
  address.grh.dgid = s.gid;
  address.grh.sgid_index = 1;
  address.port_num = 1;
  holds("ah", ibv_create_ah(pd, &address), [](ibv_ah* ah) { return ibv_destroy_ah(ah); });
  // Still usable after all those failures.
  own(probe_pointer("pd-still-usable",
                    [&] { return ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE); }));
  once("pd", [&] { return ibv_dealloc_pd(pd); });
}

void cq(const setting& s) {
  const auto qp_on = [&](ibv_cq* send, ibv_cq* receive) {
    ibv_qp_init_attr attr{};
    attr.send_cq = send;
    attr.recv_cq = receive;
    attr.cap = {1, 1, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    ibv_qp* const qp = ibv_create_qp(s.pd, &attr);
    need(qp != nullptr, "ibv_create_qp");
    return qp;
  };
  const auto other = make_cq(s, 4);
  ibv_cq* const cq = make_cq(s, 4).release();
  ibv_qp* qp = qp_on(cq, other.get());
  twice("cq-that-sends", [&] { return ibv_destroy_cq(cq); });
  ibv_destroy_qp(qp);
  qp = qp_on(other.get(), cq);
  twice("cq-that-receives", [&] { return ibv_destroy_cq(cq); });
  ibv_destroy_qp(qp);
  qp = qp_on(cq, cq);
  twice("cq-of-both", [&] { return ibv_destroy_cq(cq); });
  ibv_destroy_qp(qp);
  once("cq", [&] { return ibv_destroy_cq(cq); });
}

void channel(const setting& s) {
  ibv_comp_channel* const channel = ibv_create_comp_channel(s.context);
  ibv_cq* const first = make_cq(s, 4, channel).release();
  ibv_cq* const second = make_cq(s, 4, channel).release();
  twice("channel-with-two-cqs", [&] { return ibv_destroy_comp_channel(channel); });
  once("first-cq-of-channel", [&] { return ibv_destroy_cq(first); });
  twice("channel-with-one-cq", [&] { return ibv_destroy_comp_channel(channel); });
  once("second-cq-of-channel", [&] { return ibv_destroy_cq(second); });
  once("channel", [&] { return ibv_destroy_comp_channel(channel); });
}

void srq(const setting& s) {
  ibv_srq_init_attr wanted{};
  wanted.attr = {4, 1, 0};
  ibv_srq* const srq = ibv_create_srq(s.pd, &wanted);
  post_receive(srq, 1, {});
  {
    const auto cq = make_cq(s, 4);
    connection_options options;
    options.srq = srq;
    const auto qp = make_qp(s, cq.get(), options);
    twice("srq-with-qp", [&] { return ibv_destroy_srq(srq); });
  }
  once("srq-with-receives", [&] { return ibv_destroy_srq(srq); });
}

void qp(const setting& s) {
  const auto cq = make_cq(s, 16);
  for (const ibv_qp_state state :
       {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}) {
    ibv_qp* const qp = make_qp(s, cq.get()).release();
    bring_to(s, qp, state, qp->qp_num);
    once("qp-in-" + name(state), [&] { return ibv_destroy_qp(qp); });
  }
  const region memory(s, 4096);
  ibv_qp* waiting = make_qp(s, cq.get()).release();
  bring_to(s, waiting, IBV_QPS_RTR, waiting->qp_num);
  for (std::uint64_t id = 1; id <= 4; ++id) post_receive(waiting, id, {memory.piece(0, 64)});
  once("qp-with-receives", [&] { return ibv_destroy_qp(waiting); });
  probe("qp-with-receives-completions", completions(s, cq.get(), 0));
  // A request without an answer.
  waiting = make_qp(s, cq.get()).release();
  bring_to(s, waiting, IBV_QPS_RTS, 0xfffff0);
  request(1, IBV_WR_SEND, {memory.piece(0, 64)}).post(waiting);
  once("qp-with-sends", [&] { return ibv_destroy_qp(waiting); });
  probe("qp-with-sends-completions", completions(s, cq.get(), 0));
}

void multicast(const setting& s) {
  const auto cq = make_cq(s, 16);
  connection_options options;
  options.type = IBV_QPT_UD;
  ibv_qp* const qp = make_qp(s, cq.get(), options).release();
  bring_to(s, qp, IBV_QPS_INIT, 0, options);
  ibv_gid group{};
  ::inet_pton(AF_INET6, "ff0e::ffff:ef01:101", group.raw);
  if (probe_code("attach_mcast", [&] { return ibv_attach_mcast(qp, &group, 0); }) == 0) {
    twice("qp-with-multicast", [&] { return ibv_destroy_qp(qp); });
    probe_code("detach_mcast", [&] { return ibv_detach_mcast(qp, &group, 0); });
  }
  once("qp-without-multicast", [&] { return ibv_destroy_qp(qp); });
}

void mr(const setting& s) {
  const auto cq = make_cq(s, 16);
  static unsigned char memory[4096];
  ibv_mr* const mr = ibv_reg_mr(s.pd, memory, sizeof memory, every_access);
  const auto qp = make_qp(s, cq.get());
  bring_to(s, qp.get(), IBV_QPS_RTR, qp->qp_num);
  post_receive(qp.get(), 1, {{reinterpret_cast<std::uintptr_t>(memory), sizeof memory, mr->lkey}});
  once("mr-with-posted-receive", [&] { return ibv_dereg_mr(mr); });
}

}  // namespace

void probe_destroy(const setting& s) {
  pd(s);
  cq(s);
  channel(s);
  srq(s);
  qp(s);
  multicast(s);
  mr(s);
}

}  // namespace conformance
