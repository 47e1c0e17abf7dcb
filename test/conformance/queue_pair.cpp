// Creation of queue pairs: types, what they need, capabilities at and above each limit.
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

constexpr ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

ibv_qp_init_attr usual(ibv_cq* cq, ibv_qp_type type) {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.cap = {4, 4, 1, 1, 0};
  attr.qp_type = type;
  return attr;
}

std::string told(const ibv_qp_cap& cap) {
  return "send " + std::to_string(cap.max_send_wr) + "x" + std::to_string(cap.max_send_sge) +
         " recv " + std::to_string(cap.max_recv_wr) + "x" + std::to_string(cap.max_recv_sge) +
         " inline " + std::to_string(cap.max_inline_data);
}

void unusual_types(const setting& s, ibv_cq* cq) {
  for (const int type : {0, 1, 5, 6, 7, 8, 9, 10, 11, 255})
    own(probe_pointer("create-type-" + std::to_string(type), [&] {
      ibv_qp_init_attr attr = usual(cq, static_cast<ibv_qp_type>(type));
      return ibv_create_qp(s.pd, &attr);
    }));
}

void usual_types(const setting& s, ibv_cq* cq) {
  for (const ibv_qp_type type : types) {
    const std::string prefix = "create-" + name(type);
    ibv_qp_init_attr attr = usual(cq, type);
    int cookie = 0;
    attr.qp_context = &cookie;
    const auto qp = own(probe_pointer(prefix, [&] { return ibv_create_qp(s.pd, &attr); }));
    if (!qp) continue;
    probe(prefix + "-cap", told(attr.cap));
    probe(prefix + "-fields", std::string(qp->pd == s.pd ? "pd " : "other-pd ") +
                                  (qp->send_cq == cq && qp->recv_cq == cq ? "cqs " : "other-cqs ") +
                                  (qp->srq == nullptr ? "no-srq " : "srq ") +
                                  (qp->qp_context == &cookie ? "cookie " : "other-cookie ") +
                                  name(qp->state) + " " + name(qp->qp_type) +
                                  (qp->qp_num > 1 ? " numbered" : " number 0 or 1"));
  }
}

void parts(const setting& s, ibv_cq* cq) {
  const auto create = [&](const std::string& what, ibv_qp_type type, auto&& change) {
    ibv_qp_init_attr attr = usual(cq, type);
    change(attr);
    return own(probe_pointer("create-" + what, [&] { return ibv_create_qp(s.pd, &attr); }));
  };
  // Not probed: a queue pair without CQs. libibverbs 44 reads through the null pointer.
  const auto other = make_cq(s, 4);
  const auto two =
      create("two-cqs", IBV_QPT_RC, [&](ibv_qp_init_attr& attr) { attr.recv_cq = other.get(); });
  probe("create-two-cqs-fields",
        two->send_cq == cq && two->recv_cq == other.get() ? "in order" : "mixed up");
  ibv_srq_init_attr wanted{};
  wanted.attr = {4, 1, 0};
  const auto srq = own(ibv_create_srq(s.pd, &wanted));
  for (const ibv_qp_type type : types) {
    ibv_qp_init_attr attr = usual(cq, type);
    attr.srq = srq.get();
    const auto qp = own(
        probe_pointer("create-with-srq-" + name(type), [&] { return ibv_create_qp(s.pd, &attr); }));
    if (!qp) continue;
    probe("create-with-srq-" + name(type) + "-cap", told(attr.cap));
    std::uint32_t piece[4] = {};
    probe("post_recv-with-srq-" + name(type),
          code_name(post_receive(qp.get(), 1, {{reinterpret_cast<std::uintptr_t>(piece), 16, 0}})));
  }
  create("signal-all", IBV_QPT_RC, [](ibv_qp_init_attr& attr) { attr.sq_sig_all = 1; });
  create("signal-all-7", IBV_QPT_RC, [](ibv_qp_init_attr& attr) { attr.sq_sig_all = 7; });
}

void extended(const setting& s, ibv_cq* cq) {
  const auto create = [&](const std::string& what, ibv_qp_type type, auto&& change) {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = type;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.pd = s.pd;
    change(attr);
    own(probe_pointer("create_qp_ex-" + what, [&] { return ibv_create_qp_ex(s.context, &attr); }));
  };
  create("pd-only", IBV_QPT_RC, [](ibv_qp_init_attr_ex&) {});
  create("nothing", IBV_QPT_RC, [](ibv_qp_init_attr_ex& attr) { attr.comp_mask = 0; });
  create("unknown-comp_mask", IBV_QPT_RC,
         [](ibv_qp_init_attr_ex& attr) { attr.comp_mask |= 1U << 31; });
  const auto flags = [](unsigned value) {
    return [value](ibv_qp_init_attr_ex& attr) {
      attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
      attr.create_flags = value;
    };
  };
  create("no-flags", IBV_QPT_RC, flags(0));
  create("block-self-multicast", IBV_QPT_UD, flags(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB));
  create("scatter-fcs", IBV_QPT_RC, flags(IBV_QP_CREATE_SCATTER_FCS));
  create("source-qpn", IBV_QPT_UD, flags(IBV_QP_CREATE_SOURCE_QPN));
  create("unknown-flag", IBV_QPT_RC, flags(1U << 30));
  create("tso", IBV_QPT_UD, [](ibv_qp_init_attr_ex& attr) {
    attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    attr.max_tso_header = 64;
  });
  create("rwq-ind-table", IBV_QPT_RC,
         [](ibv_qp_init_attr_ex& attr) { attr.comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE; });
  create("rx-hash", IBV_QPT_RC,
         [](ibv_qp_init_attr_ex& attr) { attr.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH; });
  // Each operation of the extended posting interface, for each type.
  for (const ibv_qp_type type : types)
    for (unsigned bit = 0; bit <= 14; ++bit)
      create("send-op-" + std::to_string(bit) + "-" + name(type), type,
             [bit](ibv_qp_init_attr_ex& attr) {
               attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
               attr.send_ops_flags = 1ULL << bit;
             });
}

void capability(const setting& s, ibv_cq* cq, ibv_qp_type type, const std::string& what,
                const ibv_qp_cap& cap) {
  ibv_qp_init_attr attr = usual(cq, type);
  attr.cap = cap;
  const std::string full = name(type) + "-" + what;
  const auto qp = own(probe_pointer(full, [&] { return ibv_create_qp(s.pd, &attr); }));
  if (!qp) return;
  ibv_qp_attr asked{};
  ibv_qp_init_attr init{};
  ibv_query_qp(qp.get(), &asked, IBV_QP_CAP, &init);
  probe(full + "-got", told(attr.cap) + ", queried " + told(init.cap));
}

/// How many receives and sends fit, posted one by one. The queue pair is in INIT, where nothing is
/// consumed.
void capacity(const setting& s, ibv_cq* cq, unsigned asked) {
  ibv_qp_init_attr attr = usual(cq, IBV_QPT_RC);
  attr.cap.max_recv_wr = asked;
  const auto qp = own(ibv_create_qp(s.pd, &attr));
  bring_to(s, qp.get(), IBV_QPS_INIT, 0);
  unsigned fitted = 0;
  int code = 0;
  while (fitted < 5000 && (code = post_receive(qp.get(), fitted, {})) == 0) ++fitted;
  probe("receives-that-fit-into-" + std::to_string(asked),
        std::to_string(fitted) + ", then " + code_name(code));
}

}  // namespace

void probe_qp(const setting& s) {
  const auto cq = make_cq(s, 4);
  usual_types(s, cq.get());
  unusual_types(s, cq.get());
  parts(s, cq.get());
  extended(s, cq.get());
}

void probe_qp_caps(const setting& s) {
  ibv_device_attr limits{};
  ibv_query_device(s.context, &limits);
  const auto wr = static_cast<unsigned>(limits.max_qp_wr);
  const auto sge = static_cast<unsigned>(limits.max_sge);
  const auto cq = make_cq(s, 4);
  for (const ibv_qp_type type : types) {
    const auto cap = [&](const std::string& what, const ibv_qp_cap& asked) {
      capability(s, cq.get(), type, what, asked);
    };
    cap("zeroes", {0, 0, 0, 0, 0});
    cap("ones", {1, 1, 1, 1, 1});
    cap("send-only", {4, 0, 1, 0, 0});
    cap("receive-only", {0, 4, 0, 1, 0});
    cap("no-sge", {4, 4, 0, 0, 0});
    cap("odd", {3, 5, 3, 5, 7});
    cap("16", {16, 16, 2, 2, 32});
    cap("send_wr-beyond", {wr + 1, 4, 1, 1, 0});
    cap("recv_wr-beyond", {4, wr + 1, 1, 1, 0});
    cap("send_wr-huge", {0xffffffff, 4, 1, 1, 0});
    cap("recv_wr-huge", {4, 0xffffffff, 1, 1, 0});
    cap("send_sge-limit", {4, 4, sge, 1, 0});
    cap("send_sge-beyond", {4, 4, sge + 1, 1, 0});
    cap("recv_sge-limit", {4, 4, 1, sge, 0});
    cap("recv_sge-beyond", {4, 4, 1, sge + 1, 0});
    cap("send_sge-huge", {4, 4, 0xffffffff, 1, 0});
    for (const unsigned inline_size : {16U, 17U, 256U, 511U, 512U, 513U, 1024U, 0xffffffffU})
      cap("inline-" + std::to_string(inline_size), {4, 4, 1, 1, inline_size});
  }
  for (const unsigned asked : {1U, 2U, 3U, 4U, 7U, 8U, 15U, 16U, 17U, 31U, 32U, 100U, 1000U})
    capacity(s, cq.get(), asked);
}

}  // namespace conformance
