// Values that a modify may refuse, and what a query returns afterwards.
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

/// The transition whose attributes are tried: brings a queue pair there, changes one value, goes
/// on.
class prober {
 public:
  prober(const setting& s, ibv_qp_type type) : s_(s), type_(type), cq_(make_cq(s, 16)) {}

  template <class Change>
  void at(ibv_qp_state from, ibv_qp_state to, int mask, const std::string& what,
          Change&& change) const {
    connection_options options;
    options.type = type_;
    const auto qp = make_qp(s_, cq_.get(), options);
    bring_to(s_, qp.get(), from, qp->qp_num, options);
    ibv_qp_attr attr = usual_attributes(s_, qp->qp_num, options);
    attr.qp_state = to;
    attr.cur_qp_state = from;
    change(attr);
    const int code = ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | mask);
    probe(name(type_) + "-" + what, code_name(code) + ", " + name(state_of(qp.get())));
  }

  template <class Change>
  void init(const std::string& what, Change&& change) const {
    at(IBV_QPS_RESET, IBV_QPS_INIT, init_mask(type_), what, change);
  }
  template <class Change>
  void rtr(const std::string& what, Change&& change) const {
    at(IBV_QPS_INIT, IBV_QPS_RTR, rtr_mask(type_), what, change);
  }
  template <class Change>
  void rts(const std::string& what, Change&& change) const {
    at(IBV_QPS_RTR, IBV_QPS_RTS, rts_mask(type_), what, change);
  }

 private:
  const setting& s_;
  ibv_qp_type type_;
  owned<ibv_cq> cq_;
};

void initial(const prober& p) {
  for (const int port : {0, 2, 255})
    p.init("port-" + std::to_string(port),
           [port](ibv_qp_attr& attr) { attr.port_num = static_cast<std::uint8_t>(port); });
  for (const int index : {1, 63, 64, 65535})
    p.init("pkey_index-" + std::to_string(index),
           [index](ibv_qp_attr& attr) { attr.pkey_index = static_cast<std::uint16_t>(index); });
}

void access_flags(const prober& p) {
  for (const unsigned flags : {0U, 1U, 2U, 8U, 16U, 32U, 64U, 0xffffU, 0xffffffffU})
    p.init("access-" + hex(flags), [flags](ibv_qp_attr& attr) { attr.qp_access_flags = flags; });
}

void paths(const prober& p) {
  for (const int mtu : {0, 1, 2, 4, 5, 6, 7})
    p.rtr("path_mtu-" + std::to_string(mtu),
          [mtu](ibv_qp_attr& attr) { attr.path_mtu = static_cast<ibv_mtu>(mtu); });
  p.rtr("av-without-grh", [](ibv_qp_attr& attr) { attr.ah_attr.is_global = 0; });
  p.rtr("av-port-0", [](ibv_qp_attr& attr) { attr.ah_attr.port_num = 0; });
  p.rtr("av-port-2", [](ibv_qp_attr& attr) { attr.ah_attr.port_num = 2; });
  for (const int index : {0, 2, 15, 255})
    p.rtr("sgid_index-" + std::to_string(index), [index](ibv_qp_attr& attr) {
      attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(index);
    });
  p.rtr("dgid-zero", [](ibv_qp_attr& attr) { attr.ah_attr.grh.dgid = {}; });
  p.rtr("hop_limit-0", [](ibv_qp_attr& attr) { attr.ah_attr.grh.hop_limit = 0; });
  p.rtr("sl-200", [](ibv_qp_attr& attr) { attr.ah_attr.sl = 200; });
  p.rtr("dest_qpn-zero", [](ibv_qp_attr& attr) { attr.dest_qp_num = 0; });
  p.rtr("dest_qpn-25-bits", [](ibv_qp_attr& attr) { attr.dest_qp_num = 0x1000000; });
  p.rtr("rq_psn-25-bits", [](ibv_qp_attr& attr) { attr.rq_psn = 0x1000000; });
  p.rts("sq_psn-25-bits", [](ibv_qp_attr& attr) { attr.sq_psn = 0x1000000; });
}

void reliability(const prober& p) {
  for (const int depth : {0, 1, 127, 128, 129, 255}) {
    p.rtr("max_dest_rd_atomic-" + std::to_string(depth), [depth](ibv_qp_attr& attr) {
      attr.max_dest_rd_atomic = static_cast<std::uint8_t>(depth);
    });
    p.rts("max_rd_atomic-" + std::to_string(depth),
          [depth](ibv_qp_attr& attr) { attr.max_rd_atomic = static_cast<std::uint8_t>(depth); });
  }
  for (const int timer : {0, 31, 32, 255})
    p.rtr("min_rnr_timer-" + std::to_string(timer),
          [timer](ibv_qp_attr& attr) { attr.min_rnr_timer = static_cast<std::uint8_t>(timer); });
  for (const int timeout : {0, 31, 32, 255})
    p.rts("timeout-" + std::to_string(timeout),
          [timeout](ibv_qp_attr& attr) { attr.timeout = static_cast<std::uint8_t>(timeout); });
  for (const int count : {0, 7, 8, 255}) {
    p.rts("retry_cnt-" + std::to_string(count),
          [count](ibv_qp_attr& attr) { attr.retry_cnt = static_cast<std::uint8_t>(count); });
    p.rts("rnr_retry-" + std::to_string(count),
          [count](ibv_qp_attr& attr) { attr.rnr_retry = static_cast<std::uint8_t>(count); });
  }
}

void alternatives(const prober& p) {
  const auto alt = [&](const std::string& what, auto&& change) {
    p.at(IBV_QPS_INIT, IBV_QPS_RTR, rtr_mask(IBV_QPT_RC) | IBV_QP_ALT_PATH, "alt-" + what, change);
  };
  alt("usual", [](ibv_qp_attr&) {});
  alt("port-0", [](ibv_qp_attr& attr) { attr.alt_port_num = attr.alt_ah_attr.port_num = 0; });
  alt("port-2", [](ibv_qp_attr& attr) { attr.alt_port_num = attr.alt_ah_attr.port_num = 2; });
  alt("ports-disagree", [](ibv_qp_attr& attr) { attr.alt_port_num = 2; });
  alt("timeout-32", [](ibv_qp_attr& attr) { attr.alt_timeout = 32; });
  for (const int state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE,
                          IBV_QPS_ERR, IBV_QPS_UNKNOWN})
    p.at(IBV_QPS_RTR, IBV_QPS_RTS, rts_mask(IBV_QPT_RC) | IBV_QP_CUR_STATE,
         "cur_state-" + std::to_string(state) + "-in-RTR",
         [state](ibv_qp_attr& attr) { attr.cur_qp_state = static_cast<ibv_qp_state>(state); });
  for (const int state : {0, 1, 2, 3})
    p.at(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE, "path_mig_state-" + std::to_string(state),
         [state](ibv_qp_attr& attr) { attr.path_mig_state = static_cast<ibv_mig_state>(state); });
}

std::string told(const ibv_qp_attr& attr) {
  const auto number = [](const char* field, unsigned long long value) {
    return " " + std::string(field) + " " + std::to_string(value);
  };
  return name(attr.qp_state) + " cur " + name(attr.cur_qp_state) + number("mtu", attr.path_mtu) +
         number("mig", attr.path_mig_state) + " qkey " + hex(attr.qkey) + " psns " +
         hex(attr.rq_psn) + " " + hex(attr.sq_psn) + " access " + hex(attr.qp_access_flags) +
         number("pkey", attr.pkey_index) + number("drain", attr.sq_draining) +
         number("rd", attr.max_rd_atomic) + number("dest-rd", attr.max_dest_rd_atomic) +
         number("rnr-timer", attr.min_rnr_timer) + number("port", attr.port_num) +
         number("timeout", attr.timeout) + number("retry", attr.retry_cnt) +
         number("rnr-retry", attr.rnr_retry);
}

}  // namespace

void probe_transition_values(const setting& s) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) initial(prober(s, type));
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    access_flags(prober(s, type));
    paths(prober(s, type));
  }
  reliability(prober(s, IBV_QPT_RC));
  alternatives(prober(s, IBV_QPT_RC));
}

void probe_query_qp(const setting& s) {
  const auto cq = make_cq(s, 16);
  constexpr int everything = (IBV_QP_DEST_QPN << 1) - 1;
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    connection_options options;
    options.type = type;
    const auto query = [&](const std::string& what, ibv_qp* qp) {
      ibv_qp_attr attr{};
      ibv_qp_init_attr init{};
      const int code = ibv_query_qp(qp, &attr, everything, &init);
      const std::string prefix = name(type) + "-" + what;
      probe(prefix, code != 0 ? code_name(code) : told(attr));
      return std::pair{attr, init};
    };
    for (const ibv_qp_state state :
         {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}) {
      const auto qp = make_qp(s, cq.get(), options);
      bring_to(s, qp.get(), state, qp->qp_num, options);
      const auto [attr, init] = query(name(state), qp.get());
      if (state != IBV_QPS_RTS) continue;
      probe(name(type) + "-init-attributes",
            std::string(init.send_cq == cq.get() ? "cq " : "other-cq ") + name(init.qp_type) +
                " sig_all " + std::to_string(init.sq_sig_all) + " sends " +
                std::to_string(init.cap.max_send_wr) + " receives " +
                std::to_string(init.cap.max_recv_wr));
      probe(name(type) + "-dest_qp_num", attr.dest_qp_num == qp->qp_num ? "its own" : "other");
      probe(name(type) + "-address",
            std::string(attr.ah_attr.is_global != 0 ? "global" : "not global") + " sgid_index " +
                std::to_string(attr.ah_attr.grh.sgid_index) + " port " +
                std::to_string(attr.ah_attr.port_num) +
                (attr.ah_attr.grh.dgid.global.interface_id == s.gid.global.interface_id
                     ? " own gid"
                     : " other gid"));
      // Back to RESET, what remains?
      modify_state(qp.get(), IBV_QPS_RESET);
      query("RTS-RESET", qp.get());
    }
    const auto qp = make_qp(s, cq.get(), options);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    attr.port_num = 99;
    probe(name(type) + "-query-no-mask", code_name(ibv_query_qp(qp.get(), &attr, 0, &init)));
    probe(name(type) + "-query-unknown-mask",
          code_name(ibv_query_qp(qp.get(), &attr, 1 << 30, &init)));
  }
}

}  // namespace conformance
