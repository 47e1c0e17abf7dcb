// The table of queue pair transitions against a real kernel, and two queue pairs connected by the
// steps. Runs in the kernel tier's machine: qp_states DEVICE. Exit status 0: everything agreed.
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ibvxx/device_name.hpp>
#include <ibvxx/domain.hpp>
#include <ibvxx/gid_policy.hpp>
#include <ibvxx/memory.hpp>
#include <ibvxx/qp_steps.hpp>
#include <random>

using namespace ibvxx;

namespace {

int failures = 0;

[[gnu::format(printf, 1, 2)]] void fail(const char* format, ...) {
  ++failures;
  std::va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::printf("\n");
}

template <class T>
T need(result<T> outcome) {
  if (!outcome) {
    std::printf("%s\n", outcome.error().message().c_str());
    std::exit(2);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*outcome);
}

struct machine {
  unique_context context;
  unique_pd pd;
  ibv_cq* cq;
  ibv_port_attr port;
  gid_candidate gid;

  [[nodiscard]] ibv_qp* create(ibv_qp_type type) const {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {16, 16, 1, 1, 0};
    wanted.qp_type = type;
    ibv_qp* qp = ::ibv_create_qp(pd.get(), &wanted);
    if (!qp) std::perror("ibv_create_qp"), std::exit(2);
    return qp;
  }
};

/// Values that are good in every state, so that only the mask can be wrong.
ibv_qp_attr good_values(const machine& m, const ibv_qp* qp) {
  ibv_qp_attr a{};
  a.path_mtu = IBV_MTU_1024;
  a.path_mig_state = IBV_MIG_MIGRATED;
  a.qkey = 0x1234;
  a.dest_qp_num = qp->qp_num;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  a.port_num = 1;
  a.timeout = 14;
  a.retry_cnt = a.rnr_retry = 7;
  a.max_rd_atomic = a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 12;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.dgid = m.gid.entry.gid;
  a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(m.gid.entry.gid_index);
  a.ah_attr.grh.hop_limit = 64;
  a.cap = {16, 16, 1, 1, 0};
  return a;
}

/// Takes a queue pair to `state` by the shortest way, with what the table requires.
void drive(const machine& m, ibv_qp* qp, ibv_qp_state state) {
  const auto step = [&](ibv_qp_state from, ibv_qp_state to) {
    ibv_qp_attr a = good_values(m, qp);
    a.qp_state = to;
    const int mask = IBV_QP_STATE | find_transition(qp->qp_type, from, to)->required;
    if (const int code = ::ibv_modify_qp(qp, &a, mask); code != 0) {
      std::printf("cannot reach %s: %s->%s gives %d\n", qp_state_name(state), qp_state_name(from),
                  qp_state_name(to), code);
      std::exit(2);
    }
  };
  // A send queue that is still draining lets nothing but ERR happen (Soft-RoCE).
  if (qp->state == IBV_QPS_SQD) step(IBV_QPS_SQD, IBV_QPS_ERR);
  step(qp->state, IBV_QPS_RESET);
  if (state == IBV_QPS_RESET) return;
  step(IBV_QPS_RESET, IBV_QPS_INIT);
  if (state == IBV_QPS_INIT) return;
  if (state == IBV_QPS_ERR) return step(IBV_QPS_INIT, IBV_QPS_ERR);
  step(IBV_QPS_INIT, IBV_QPS_RTR);
  if (state == IBV_QPS_RTR) return;
  step(IBV_QPS_RTR, IBV_QPS_RTS);
  if (state == IBV_QPS_RTS) return;
  step(IBV_QPS_RTS, IBV_QPS_SQD);
  // Leaving SQD before it has drained is refused.
  for (int tries = 0; tries < 100; ++tries) {
    ibv_qp_attr a{};
    ibv_qp_init_attr initial{};
    if (::ibv_query_qp(qp, &a, IBV_QP_STATE, &initial) == 0 && !a.sq_draining) return;
    ::usleep(1000);
  }
  fail("SQD does not drain");
}

void compare(const machine& m, ibv_qp_type type, unsigned seed) {
  constexpr ibv_qp_state from_states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                          IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};
  constexpr ibv_qp_state to_states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                        IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
  std::mt19937 random(seed);
  ibv_qp* qp = m.create(type);
  int accepted = 0, refused = 0;
  const auto probe = [&](ibv_qp_state from, ibv_qp_state to, int mask) {
    drive(m, qp, from);
    ibv_qp_attr a = good_values(m, qp);
    a.qp_state = to;
    a.cur_qp_state = from;
    const ibv_qp_state target = (mask & IBV_QP_STATE) != 0 ? to : from;
    const bool expected = check_modify(type, from, target, mask).has_value();
    const int code = ::ibv_modify_qp(qp, &a, mask);
    ++(code == 0 ? accepted : refused);
    if ((code == 0) != expected)
      fail("%s %s->%s with %s: the kernel says %d, the table %s", qp_type_name(type),
           qp_state_name(from), qp_state_name(target), qp_attribute_names(mask).c_str(), code,
           expected ? "yes" : "no");
  };
  for (const ibv_qp_state from : from_states)
    for (const ibv_qp_state to : to_states) {
      const auto transition = find_transition(type, from, to);
      const int base = IBV_QP_STATE | (transition ? transition->required : 0);
      probe(from, to, base);
      // Each attribute alone too much, or too little. RoCE has no alternate paths: whatever the
      // table says, the kernel refuses those for another reason.
      for (int bit = 1; bit <= 20; ++bit)
        if (1 << bit != IBV_QP_ALT_PATH) probe(from, to, base ^ 1 << bit);
      for (int round = 0; round < 20; ++round) {
        int mask = base;
        for (int flips = 0; flips < 3; ++flips) mask ^= 1 << random() % 21;
        mask &= ~IBV_QP_ALT_PATH;
        probe(from, to, mask);
      }
    }
  std::printf("%s: %d accepted, %d refused\n", qp_type_name(type), accepted, refused);
  ::ibv_destroy_qp(qp);
}

/// Two queue pairs on one port, connected through the text form of their addresses; one message.
void converse(const machine& m) {
  std::array<ibv_qp*, 2> qp = {m.create(IBV_QPT_RC), m.create(IBV_QPT_RC)};
  std::array<char, 64> memory{};
  auto mr = need(reg_mr(m.pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  std::array<qp_address, 2> address = {
      local_address(qp[0], 0xfffffe, m.port, m.gid.entry.gid),  // PSNs wrap at once
      local_address(qp[1], 77, m.port, m.gid.entry.gid)};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto peer = need(qp_address::parse(need(address[1 - i].to_text()).view()));
    need(qp_to_init(qp[i], {.port = 1, .access = IBV_ACCESS_REMOTE_WRITE}));
    auto options = need(
        rtr_options(address[i], peer, {.sgid_index = static_cast<int>(m.gid.entry.gid_index)}));
    need(qp_to_rtr(qp[i], options));
    need(qp_to_rts(qp[i], {.sq_psn = address[i].psn}));
  }
  std::snprintf(memory.data(), 32, "through the steps");
  ibv_sge out{reinterpret_cast<std::uintptr_t>(memory.data()), 18, mr->lkey};
  ibv_sge in{reinterpret_cast<std::uintptr_t>(memory.data() + 32), 32, mr->lkey};
  for (int i = 0; i < 5; ++i) {
    ibv_recv_wr receive{}, *bad_receive = nullptr;
    receive.sg_list = &in;
    receive.num_sge = 1;
    ibv_send_wr send{}, *bad_send = nullptr;
    send.sg_list = &out;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    if (::ibv_post_recv(qp[1], &receive, &bad_receive) != 0 ||
        ::ibv_post_send(qp[0], &send, &bad_send) != 0)
      return fail("posting failed");
    for (int done = 0, tries = 0; done < 2; ++tries) {
      ibv_wc completion{};
      const int taken = ::ibv_poll_cq(m.cq, 1, &completion);
      done += taken;
      if (taken == 1 && completion.status != IBV_WC_SUCCESS)
        return fail("completion status %d", static_cast<int>(completion.status));
      if (taken < 0 || tries > 20000) return fail("no completion");
      if (taken == 0) ::usleep(100);
    }
  }
  if (std::string_view(memory.data() + 32) != "through the steps") fail("another message came");
  // The state was changed without the caller's knowledge: the message must name it.
  qp[0]->state = IBV_QPS_RTR;
  need(qp_to_error(qp[1]));
  qp[1]->state = IBV_QPS_RTR;
  const auto stale = qp_to_rts(qp[1]);
  if (stale)
    fail("ERR to RTS went through");
  else
    std::printf("%s\n", stale.error().message().c_str());
  for (ibv_qp* pair : qp) ::ibv_destroy_qp(pair);
}

}  // namespace

int main(int count, char** arguments) {
  const auto wanted = need(device_port::parse(count > 1 ? arguments[1] : "rxe0"));
  for (const device_info& device : need(describe_devices())) {
    std::printf("%s\n", to_text(device).c_str());
    for (const port_info& port : device.ports) std::printf("  %s\n", to_text(port).c_str());
  }
  machine m;
  auto list = need(get_device_list());
  ibv_device* device = list.find(wanted.device);
  if (!device) return std::printf("no device %s\n", wanted.device.c_str()), 2;
  m.context = need(open_device(device));
  m.port = need(query_port(m.context, 1));
  std::vector<ibv_gid_entry> entries(static_cast<std::size_t>(m.port.gid_tbl_len));
  entries.resize(need(query_gid_table(m.context, entries)));
  for (const gid_candidate& candidate : need(rank_gids(entries, 1, false)))
    std::printf("  GID %u: %s\n", candidate.entry.gid_index, candidate.reason.c_str());
  m.gid = need(choose_gid(entries, 1, false, gid_policy{}));
  m.pd = need(alloc_pd(m.context));
  m.cq = ::ibv_create_cq(m.context.get(), 64, nullptr, nullptr, 0);
  if (!m.cq) return std::perror("ibv_create_cq"), 2;

  const unsigned seed = count > 2 ? static_cast<unsigned>(std::atoi(arguments[2])) : 1;
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) compare(m, type, seed);
  converse(m);
  ::ibv_destroy_cq(m.cq);
  std::printf("%d disagreement(s)\n", failures);
  return failures == 0 ? 0 : 1;
}
