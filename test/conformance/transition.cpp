// Every transition of queue pairs: with what it requires, with each required attribute missing, and
// with each other attribute added; and every pair of states between which there is none.
#include <array>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

struct attribute {
  const char* name;
  int bit;
};

constexpr attribute attributes[] = {
    {"CUR_STATE", IBV_QP_CUR_STATE},
    {"EN_SQD_ASYNC_NOTIFY", IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {"ACCESS_FLAGS", IBV_QP_ACCESS_FLAGS},
    {"PKEY_INDEX", IBV_QP_PKEY_INDEX},
    {"PORT", IBV_QP_PORT},
    {"QKEY", IBV_QP_QKEY},
    {"AV", IBV_QP_AV},
    {"PATH_MTU", IBV_QP_PATH_MTU},
    {"TIMEOUT", IBV_QP_TIMEOUT},
    {"RETRY_CNT", IBV_QP_RETRY_CNT},
    {"RNR_RETRY", IBV_QP_RNR_RETRY},
    {"RQ_PSN", IBV_QP_RQ_PSN},
    {"MAX_QP_RD_ATOMIC", IBV_QP_MAX_QP_RD_ATOMIC},
    {"ALT_PATH", IBV_QP_ALT_PATH},
    {"MIN_RNR_TIMER", IBV_QP_MIN_RNR_TIMER},
    {"SQ_PSN", IBV_QP_SQ_PSN},
    {"MAX_DEST_RD_ATOMIC", IBV_QP_MAX_DEST_RD_ATOMIC},
    {"PATH_MIG_STATE", IBV_QP_PATH_MIG_STATE},
    {"CAP", IBV_QP_CAP},
    {"DEST_QPN", IBV_QP_DEST_QPN},
    {"RATE_LIMIT", IBV_QP_RATE_LIMIT},
};

constexpr ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                   IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};

/// Modifies one fresh queue pair after the other.
class prober {
 public:
  prober(const setting& s, ibv_qp_type type) : s_(s), type_(type), cq_(make_cq(s, 16)) {}

  /// One attempt from a state, on a queue pair of its own: "EINVAL, stays INIT" or "0, RTR".
  [[nodiscard]] std::string attempt(ibv_qp_state from, ibv_qp_state to, int mask) const {
    connection_options options;
    options.type = type_;
    const auto qp = make_qp(s_, cq_.get(), options);
    bring_to(s_, qp.get(), from, qp->qp_num, options);
    ibv_qp_attr attr = usual_attributes(s_, qp->qp_num, options);
    attr.qp_state = to;
    attr.cur_qp_state = from;
    const int code = ibv_modify_qp(qp.get(), &attr, mask);
    const ibv_qp_state now = state_of(qp.get());
    const std::string known = qp->state == now ? "" : ", known as " + name(qp->state);
    return code_name(code) + (code != 0 && now == from ? ", stays " : ", ") + name(now) + known;
  }

  /// A transition that exists, in all its variations.
  void vary(ibv_qp_state from, ibv_qp_state to, int required) const {
    const std::string arrow = name(from) + "-" + name(to);
    probe(arrow, attempt(from, to, IBV_QP_STATE | required));
    for (const attribute& one : attributes) {
      const bool needed = (required & one.bit) != 0;
      probe(arrow + (needed ? "-without-" : "-with-") + one.name,
            attempt(from, to, IBV_QP_STATE | (required ^ one.bit)));
    }
  }

  /// A transition to RESET or ERR: only the state is accepted; one line.
  void vary_briefly(ibv_qp_state from, ibv_qp_state to) const {
    const std::string arrow = name(from) + "-" + name(to);
    probe(arrow, attempt(from, to, IBV_QP_STATE));
    std::string others;
    for (const attribute& one : attributes) {
      const std::string outcome = attempt(from, to, IBV_QP_STATE | one.bit);
      if (outcome != "EINVAL, stays " + name(from))
        others += (others.empty() ? "" : "; ") + std::string(one.name) + " " + outcome;
    }
    probe(arrow + "-with-any", others.empty() ? "EINVAL each" : others);
  }

  /// Attributes without a state.
  void modify_within(ibv_qp_state state) const {
    probe("within-" + name(state) + "-nothing", attempt(state, state, 0));
    std::string accepted;
    std::string odd;
    for (const attribute& one : attributes) {
      const std::string outcome = attempt(state, state, one.bit);
      if (outcome == "0, " + name(state))
        accepted += (accepted.empty() ? "" : " ") + std::string(one.name);
      else if (outcome != "EINVAL, stays " + name(state))
        odd += "; " + std::string(one.name) + " " + outcome;
    }
    probe("within-" + name(state) + "-accepts", (accepted.empty() ? "nothing" : accepted) + odd);
  }

  void all() const {
    vary(IBV_QPS_RESET, IBV_QPS_INIT, init_mask(type_));
    vary(IBV_QPS_INIT, IBV_QPS_INIT, 0);
    vary(IBV_QPS_INIT, IBV_QPS_RTR, rtr_mask(type_));
    vary(IBV_QPS_RTR, IBV_QPS_RTS, rts_mask(type_));
    vary(IBV_QPS_RTS, IBV_QPS_RTS, 0);
    vary(IBV_QPS_RTS, IBV_QPS_SQD, 0);
    vary(IBV_QPS_SQD, IBV_QPS_SQD, 0);
    vary(IBV_QPS_SQD, IBV_QPS_RTS, 0);
    for (const ibv_qp_state from : states) {
      if (from == IBV_QPS_SQE) continue;  // cannot be asked for
      vary_briefly(from, IBV_QPS_RESET);
      vary_briefly(from, IBV_QPS_ERR);
      modify_within(from);
      for (const ibv_qp_state to : states)
        if (!exists(from, to))
          probe(name(from) + "-" + name(to), attempt(from, to, IBV_QP_STATE | generous_mask(to)));
      probe(name(from) + "-7", attempt(from, IBV_QPS_UNKNOWN, IBV_QP_STATE));
    }
  }

 private:
  [[nodiscard]] static bool exists(ibv_qp_state from, ibv_qp_state to) {
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return true;
    const std::array<std::array<int, 3>, 5> next = {{{IBV_QPS_INIT, -1, -1},
                                                     {IBV_QPS_INIT, IBV_QPS_RTR, -1},
                                                     {IBV_QPS_RTS, -1, -1},
                                                     {IBV_QPS_RTS, IBV_QPS_SQD, -1},
                                                     {IBV_QPS_RTS, IBV_QPS_SQD, -1}}};
    if (from > IBV_QPS_SQD) return false;
    for (const int one : next[static_cast<std::size_t>(from)])
      if (one == static_cast<int>(to)) return true;
    return false;
  }

  /// What the state asks for where it can be reached, so that nothing else can be the reason.
  [[nodiscard]] int generous_mask(ibv_qp_state to) const {
    switch (to) {
      case IBV_QPS_INIT:
        return init_mask(type_);
      case IBV_QPS_RTR:
        return rtr_mask(type_);
      case IBV_QPS_RTS:
        return rts_mask(type_);
      default:
        return 0;
    }
  }

  const setting& s_;
  ibv_qp_type type_;
  owned<ibv_cq> cq_;
};

}  // namespace

void probe_transitions_rc(const setting& s) {
  prober(s, IBV_QPT_RC).all();
}

void probe_transitions_uc(const setting& s) {
  prober(s, IBV_QPT_UC).all();
}

void probe_transitions_ud(const setting& s) {
  prober(s, IBV_QPT_UD).all();
}

}  // namespace conformance
