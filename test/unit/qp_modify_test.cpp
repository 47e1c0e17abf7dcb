// modify_qp and the steps, against a kernel made of a few variables. This program defines
// the verbs that they call; it must not be linked with the shim, which defines them, too.
#include <cstddef>
#include <cstring>
#include <ibvxx/qp_modify.hpp>
#include <ibvxx/qp_steps.hpp>
#include <string>

#include "catch.hpp"

namespace ibvxx::qp_modify_test {

namespace {

/// What the kernel has, what it was asked, and what it is to answer.
struct fake_kernel {
  ibv_qp_state real = IBV_QPS_RESET;
  bool draining = false;
  std::uint8_t port_num = 1;  // the queue pair's, of INIT
  int answer = 0;             // of ibv_modify_qp
  int query_answer = 0;
  int modifies = 0, queries = 0;
  int mask = 0;  // of the last ibv_modify_qp
  ibv_qp_attr attributes{};
  ibv_device_attr limits{};
  ibv_port_attr port{};
} kernel;

struct queue_pair {
  ibv_device device{};
  ibv_context context{};
  ibv_qp qp{};

  explicit queue_pair(ibv_qp_type type, ibv_qp_state state = IBV_QPS_RESET) {
    kernel = {};
    kernel.real = state;
    kernel.limits.phys_port_cnt = 2;
    kernel.limits.max_pkeys = 64;
    kernel.limits.max_qp_rd_atom = 16;
    kernel.limits.max_qp_init_rd_atom = 8;
    kernel.port.active_mtu = IBV_MTU_1024;
    kernel.port.gid_tbl_len = 4;
    kernel.port.link_layer = IBV_LINK_LAYER_ETHERNET;
    std::strcpy(device.name, "fake0");
    context.device = &device;
    qp.context = &context;
    qp.qp_type = type;
    qp.state = state;
    errno = EXDEV;  // an earlier value must neither matter nor change
  }
  queue_pair(const queue_pair&) = delete;
  queue_pair& operator=(const queue_pair&) = delete;
  ~queue_pair() { CHECK(errno == EXDEV); }
};

void refused(const result<void>& outcome, int code, std::string_view wanted) {
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().call() == verb::modify_qp);
  CHECK(outcome.error().code() == code);
  CHECK(outcome.error().detail() == wanted);
}

qp_rtr_options good_rtr() {
  qp_rtr_options options;
  options.path.port_num = 1;
  options.path.is_global = 1;
  options.dest_qpn = 0x22;
  options.rq_psn = 0x33;
  return options;
}

}  // namespace

// The system's header of the same name as the macro would stand in the way of the definition.
#undef ibv_query_port

extern "C" {

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  ++kernel.modifies;
  kernel.mask = mask;
  kernel.attributes = *attr;
  if (kernel.answer == 0 && (mask & IBV_QP_STATE) != 0) kernel.real = qp->state = attr->qp_state;
  return kernel.answer;
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr*) {
  ++kernel.queries;
  errno = ENXIO;
  if (kernel.query_answer != 0) return kernel.query_answer;
  if ((mask & IBV_QP_STATE) != 0) attr->qp_state = qp->state = kernel.real;
  attr->sq_draining = kernel.draining;
  if ((mask & IBV_QP_PORT) != 0) attr->port_num = kernel.port_num;
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  errno = ENXIO;
  *attr = kernel.limits;
  return 0;
}

// Reached through the inline ibv_query_port, since the context is not an extended one.
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* attr) {
  errno = ENXIO;
  std::memcpy(static_cast<void*>(attr), &kernel.port, offsetof(ibv_port_attr, port_cap_flags2));
  return 0;
}

}  // extern "C"

TEST_CASE("an RC queue pair reaches RTS with the masks that RC needs", "[qp_steps]") {
  queue_pair rc(IBV_QPT_RC);
  REQUIRE(qp_to_init(&rc.qp, {.port = 2, .pkey_index = 3, .access = IBV_ACCESS_REMOTE_READ}));
  CHECK(kernel.mask == (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  CHECK(kernel.attributes.port_num == 2);
  CHECK(kernel.attributes.pkey_index == 3);
  CHECK(kernel.attributes.qp_access_flags == IBV_ACCESS_REMOTE_READ);

  auto rtr = good_rtr();
  rtr.max_dest_rd_atomic = 4;
  rtr.min_rnr_timer = 31;
  REQUIRE(qp_to_rtr(&rc.qp, rtr));
  CHECK(kernel.mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
  CHECK(kernel.attributes.dest_qp_num == 0x22);
  CHECK(kernel.attributes.rq_psn == 0x33);
  CHECK(kernel.attributes.path_mtu == IBV_MTU_1024);
  CHECK(kernel.attributes.max_dest_rd_atomic == 4);
  CHECK(kernel.attributes.min_rnr_timer == 31);
  CHECK(kernel.attributes.ah_attr.port_num == 1);

  REQUIRE(qp_to_rts(&rc.qp, {.sq_psn = 0xffffff, .rnr_retry = 6}));
  CHECK(kernel.mask == (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                        IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
  CHECK(kernel.attributes.sq_psn == 0xffffff);
  CHECK(kernel.attributes.timeout == 14);
  CHECK(kernel.attributes.retry_cnt == 7);
  CHECK(kernel.attributes.rnr_retry == 6);
  CHECK(kernel.attributes.max_rd_atomic == 1);

  REQUIRE(qp_to_error(&rc.qp));
  CHECK(kernel.mask == IBV_QP_STATE);
  REQUIRE(qp_to_reset(&rc.qp));
  CHECK(rc.qp.state == IBV_QPS_RESET);
  CHECK(kernel.modifies == 5);
  CHECK(kernel.queries == 0);  // nothing that succeeds costs a query
}

TEST_CASE("UC, UD, XRC and RAW_PACKET get the masks that they need", "[qp_steps]") {
  const auto masks = [](ibv_qp_type type) {
    queue_pair pair(type);
    REQUIRE(qp_to_init(&pair.qp, {.qkey = 0x1111}));
    const int init = kernel.mask;
    REQUIRE(qp_to_rtr(&pair.qp, good_rtr()));
    const int rtr = kernel.mask;
    REQUIRE(qp_to_rts(&pair.qp));
    return std::array{init, rtr, kernel.mask};
  };
  constexpr int identity = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  constexpr int remote =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  constexpr int sending = IBV_QP_STATE | IBV_QP_SQ_PSN;
  constexpr int retries =
      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  constexpr int responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  CHECK(masks(IBV_QPT_UC) == std::array{identity | IBV_QP_ACCESS_FLAGS, remote, sending});
  CHECK(masks(IBV_QPT_UD) == std::array{identity | IBV_QP_QKEY, +IBV_QP_STATE, sending});
  CHECK(masks(IBV_QPT_XRC_SEND) ==
        std::array{identity | IBV_QP_ACCESS_FLAGS, remote, sending | retries});
  CHECK(masks(IBV_QPT_XRC_RECV) ==
        std::array{identity | IBV_QP_ACCESS_FLAGS, remote | responder, sending | IBV_QP_TIMEOUT});
  CHECK(masks(IBV_QPT_RAW_PACKET) ==
        std::array{IBV_QP_STATE | IBV_QP_PORT, +IBV_QP_STATE, +IBV_QP_STATE});
}

TEST_CASE("a step refuses values out of range by field and limit, before any verb", "[qp_steps]") {
  queue_pair rc(IBV_QPT_RC);
  const auto init = [&](qp_init_options o, std::string_view wanted) {
    refused(qp_to_init(&rc.qp, o), EINVAL, wanted);
  };
  init({.port = 0}, "qp_init_options.port 0 is outside 1..255");
  init({.port = 256}, "qp_init_options.port 256 is outside 1..255");
  init({.pkey_index = -1}, "qp_init_options.pkey_index -1 is outside 0..65535");
  init({.pkey_index = 65536}, "qp_init_options.pkey_index 65536 is outside 0..65535");
  init({.access = 1 << 30}, "qp_init_options.access 0x40000000 has unknown bits 0x40000000");

  const auto rtr = [&](auto change, std::string_view wanted) {
    auto options = good_rtr();
    change(options);
    refused(qp_to_rtr(&rc.qp, options), EINVAL, wanted);
  };
  rtr([](auto& o) { o.path.port_num = 0; }, "qp_rtr_options.path.port_num 0 is outside 1..255");
  rtr([](auto& o) { o.dest_qpn = 0; }, "qp_rtr_options.dest_qpn 0 is outside 1..16777215");
  rtr([](auto& o) { o.dest_qpn = 1 << 24; },
      "qp_rtr_options.dest_qpn 16777216 is outside 1..16777215");
  rtr([](auto& o) { o.rq_psn = 0xffffffff; },
      "qp_rtr_options.rq_psn 4294967295 is outside 0..16777215");
  rtr([](auto& o) { o.path_mtu = static_cast<ibv_mtu>(6); },
      "qp_rtr_options.path_mtu 6 is outside 1..5");
  rtr([](auto& o) { o.max_dest_rd_atomic = 256; },
      "qp_rtr_options.max_dest_rd_atomic 256 is outside 0..255");
  rtr([](auto& o) { o.min_rnr_timer = 32; }, "qp_rtr_options.min_rnr_timer 32 is outside 0..31");

  const auto rts = [&](qp_rts_options o, std::string_view wanted) {
    refused(qp_to_rts(&rc.qp, o), EINVAL, wanted);
  };
  rts({.sq_psn = 1 << 24}, "qp_rts_options.sq_psn 16777216 is outside 0..16777215");
  rts({.timeout = 32}, "qp_rts_options.timeout 32 is outside 0..31");
  rts({.retry_cnt = 8}, "qp_rts_options.retry_cnt 8 is outside 0..7");
  rts({.rnr_retry = -1}, "qp_rts_options.rnr_retry -1 is outside 0..7");
  rts({.max_rd_atomic = 256}, "qp_rts_options.max_rd_atomic 256 is outside 0..255");
  CHECK(kernel.modifies == 0);
  CHECK(kernel.queries == 0);
}

TEST_CASE("a step ignores options that its type does not use", "[qp_steps]") {
  queue_pair ud(IBV_QPT_UD);
  REQUIRE(qp_to_init(&ud.qp, {.access = -1, .qkey = 0x11111111}));
  CHECK(kernel.attributes.qkey == 0x11111111);
  REQUIRE(qp_to_rtr(&ud.qp));
  REQUIRE(qp_to_rts(&ud.qp, {.sq_psn = 1, .timeout = 99}));
}

TEST_CASE("a step of an unknown type is refused with that reason", "[qp_steps]") {
  queue_pair driver(IBV_QPT_DRIVER);
  refused(qp_to_init(&driver.qp), EOPNOTSUPP,
          "the attributes that a DRIVER queue pair (type 255) needs are not known");
  CHECK(kernel.modifies == 0);
}

TEST_CASE("a null queue pair is refused", "[qp_modify]") {
  ibv_qp* none = nullptr;
  ibv_qp_attr attributes{};
  refused(modify_qp(none, attributes, IBV_QP_STATE), EINVAL, "qp is null");
  refused(qp_to_init(none), EINVAL, "qp is null");
  refused(qp_to_rtr(none), EINVAL, "qp is null");
  refused(qp_to_rts(none), EINVAL, "qp is null");
  refused(qp_to_error(none), EINVAL, "qp is null");
  refused(qp_to_reset(none), EINVAL, "qp is null");
}

TEST_CASE("a wrong transition is refused before the call, by name", "[qp_modify]") {
  queue_pair rc(IBV_QPT_RC, IBV_QPS_INIT);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  const auto outcome =
      modify_qp(&rc.qp, attributes,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_MAX_DEST_RD_ATOMIC |
                    IBV_QP_MIN_RNR_TIMER | IBV_QP_QKEY);
  refused(outcome, EINVAL, "RC INIT->RTR: missing PATH_MTU, RQ_PSN; not allowed: QKEY");
  CHECK(outcome.error().message() ==
        "ibv_modify_qp on fake0: Invalid argument (EINVAL): RC INIT->RTR: missing PATH_MTU, "
        "RQ_PSN; not allowed: QKEY");
  // As docs/queue-pairs.md shows it.
  refused(modify_qp(&rc.qp, attributes, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_QKEY),
          EINVAL,
          "RC INIT->RTR: missing PATH_MTU, RQ_PSN, MIN_RNR_TIMER, MAX_DEST_RD_ATOMIC; not allowed: "
          "QKEY");
  refused(qp_to_rts(&rc.qp), EINVAL, "RC INIT->RTS: there is no such transition");
  CHECK(kernel.modifies == 0);
}

TEST_CASE("a change without IBV_QP_STATE is checked against the current state", "[qp_modify]") {
  queue_pair rc(IBV_QPT_RC, IBV_QPS_RTS);
  ibv_qp_attr attributes{};
  attributes.min_rnr_timer = 5;
  REQUIRE(modify_qp(&rc.qp, attributes, IBV_QP_MIN_RNR_TIMER));
  CHECK(kernel.mask == IBV_QP_MIN_RNR_TIMER);
  refused(modify_qp(&rc.qp, attributes, IBV_QP_AV), EINVAL, "RC RTS->RTS: not allowed: AV");
}

TEST_CASE("nothing is refused for a state that the kernel does not confirm", "[qp_modify]") {
  // libibverbs has RESET (or, after ibv_open_qp, UNKNOWN), the kernel has INIT.
  for (const ibv_qp_state believed : {IBV_QPS_RESET, IBV_QPS_UNKNOWN}) {
    queue_pair rc(IBV_QPT_RC, IBV_QPS_INIT);
    rc.qp.state = believed;
    REQUIRE(qp_to_rtr(&rc.qp, good_rtr()));
    CHECK(kernel.queries == 1);
    CHECK(kernel.modifies == 1);
    CHECK(rc.qp.state == IBV_QPS_RTR);
  }
}

TEST_CASE("a refusal after a silent change of state names the new state", "[qp_modify]") {
  queue_pair rc(IBV_QPT_RC, IBV_QPS_ERR);
  rc.qp.state = IBV_QPS_RTR;  // the state as libibverbs has it
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_SQD;
  refused(modify_qp(&rc.qp, attributes, IBV_QP_STATE), EINVAL,
          "RC ERR->SQD: there is no such transition; the queue pair was in ERR, not RTR");
  CHECK(kernel.modifies == 0);
  CHECK(rc.qp.state == IBV_QPS_ERR);
}

TEST_CASE("a failure after a silent change of state names the new state", "[qp_modify]") {
  queue_pair rc(IBV_QPT_RC, IBV_QPS_ERR);
  rc.qp.state = IBV_QPS_RTR;
  kernel.answer = EINVAL;
  refused(qp_to_rts(&rc.qp), EINVAL, "RC RTR->RTS; the queue pair was in ERR, not RTR");
  CHECK(kernel.modifies == 1);
  CHECK(rc.qp.state == IBV_QPS_ERR);
}

TEST_CASE("where the state cannot be queried, the one in ibv_qp is used", "[qp_modify]") {
  queue_pair rc(IBV_QPT_RC, IBV_QPS_INIT);
  kernel.query_answer = EIO;
  refused(qp_to_rts(&rc.qp), EINVAL, "RC INIT->RTS: there is no such transition");
  kernel.answer = EIO;
  refused(qp_to_rtr(&rc.qp, good_rtr()), EIO, "RC INIT->RTR");
}

TEST_CASE("CUR_STATE is used: a UD queue pair leaves SQE with it", "[qp_modify]") {
  queue_pair ud(IBV_QPT_UD, IBV_QPS_SQE);
  ud.qp.state = IBV_QPS_RTS;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.cur_qp_state = IBV_QPS_SQE;
  REQUIRE(modify_qp(&ud.qp, attributes, IBV_QP_STATE | IBV_QP_CUR_STATE));
  CHECK(kernel.queries == 0);
  attributes.cur_qp_state = IBV_QPS_INIT;
  refused(modify_qp(&ud.qp, attributes, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL,
          "UD INIT->RTS: there is no such transition");
  CHECK(kernel.queries == 0);
}

TEST_CASE("an EINVAL that the table cannot explain names the value above its limit",
          "[qp_modify]") {
  const auto rtr = [](auto change, std::string_view wanted) {
    queue_pair rc(IBV_QPT_RC, IBV_QPS_INIT);
    kernel.answer = EINVAL;
    auto options = good_rtr();
    change(options);
    refused(qp_to_rtr(&rc.qp, options), EINVAL, wanted);
  };
  rtr([](auto& o) { o.path_mtu = IBV_MTU_4096; },
      "RC INIT->RTR; path_mtu 4096 is above port 1's active MTU of 1024");
  rtr([](auto& o) { o.max_dest_rd_atomic = 17; },
      "RC INIT->RTR; max_dest_rd_atomic 17 is above the device's limit of 16");
  rtr([](auto& o) { o.path.port_num = 3; },
      "RC INIT->RTR; ah_attr.port_num 3 is above the device's limit of 2");
  rtr([](auto& o) { o.path.port_num = 2; },
      "RC INIT->RTR; ah_attr.port_num 2 is not the queue pair's port 1");
  rtr([](auto& o) { o.path.grh.sgid_index = 4; },
      "RC INIT->RTR; sgid_index 4 is outside port 1's GID table: 0..3");
  rtr([](auto& o) { o.path.is_global = 0; },
      "RC INIT->RTR; port 1 is RoCE: ah_attr.is_global and a destination GID are needed");
  rtr([](auto&) {}, "RC INIT->RTR; sgid_index 0, port 1");

  queue_pair rc(IBV_QPT_RC, IBV_QPS_RTR);
  kernel.answer = -EINVAL;  // some providers get the sign wrong
  refused(qp_to_rts(&rc.qp, {.max_rd_atomic = 9}), EINVAL,
          "RC RTR->RTS; max_rd_atomic 9 is above the device's limit of 8");
  queue_pair fresh(IBV_QPT_RC);
  kernel.answer = EINVAL;
  refused(qp_to_init(&fresh.qp, {.port = 3}), EINVAL,
          "RC RESET->INIT; port_num 3 is above the device's limit of 2");
}

TEST_CASE("the error of an EINVAL in SQD says that the send queue is still draining",
          "[qp_modify]") {
  queue_pair rc(IBV_QPT_RC, IBV_QPS_SQD);
  kernel.answer = EINVAL;
  kernel.draining = true;
  refused(qp_to_reset(&rc.qp), EINVAL, "RC SQD->RESET; the send queue is still draining");
  kernel.draining = false;
  refused(qp_to_reset(&rc.qp), EINVAL, "RC SQD->RESET");
}

TEST_CASE("the top bit of a Q_Key explains EPERM", "[qp_modify]") {
  queue_pair ud(IBV_QPT_UD);
  kernel.answer = EPERM;
  refused(qp_to_init(&ud.qp, {.qkey = 0x80000001}), EPERM,
          "UD RESET->INIT; qkey 0x80000001 has the top bit set, which needs CAP_NET_RAW");
  refused(qp_to_init(&ud.qp, {.qkey = 1}), EPERM, "UD RESET->INIT");
}

TEST_CASE("an attribute that is not checked is left to the kernel, and named when the call fails",
          "[qp_modify]") {
  queue_pair rc(IBV_QPT_RC, IBV_QPS_RTS);
  ibv_qp_attr attributes{};
  REQUIRE(modify_qp(&rc.qp, attributes, IBV_QP_RATE_LIMIT));
  kernel.answer = EOPNOTSUPP;
  refused(modify_qp(&rc.qp, attributes, IBV_QP_RATE_LIMIT), EOPNOTSUPP,
          "RC RTS->RTS; RATE_LIMIT may be unknown to this kernel");
}

TEST_CASE("drivers with other rules are not checked against the table", "[qp_modify]") {
  for (const ibv_transport_type transport : {IBV_TRANSPORT_IWARP, IBV_TRANSPORT_UNSPECIFIED}) {
    queue_pair rc(IBV_QPT_RC);
    rc.device.transport_type = transport;
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    CHECK(modify_qp(&rc.qp, attributes, IBV_QP_STATE));
    CHECK(kernel.modifies == 1);
  }
  queue_pair driver(IBV_QPT_DRIVER);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  CHECK(modify_qp(&driver.qp, attributes, IBV_QP_STATE | IBV_QP_QKEY));
}

TEST_CASE("two addresses make the options of a connection", "[qp_steps]") {
  qp_address local{0x11, 0x1000, 0, {}, IBV_MTU_2048};
  qp_address remote{0x22, 0x2000, 0, {}, IBV_MTU_1024};
  ::inet_pton(AF_INET6, "::ffff:10.0.0.2", remote.gid.raw);
  const auto roce = rtr_options(local, remote, {.port = 2, .sgid_index = 3, .traffic_class = 0x68});
  REQUIRE(roce);
  CHECK(roce->dest_qpn == 0x22);
  CHECK(roce->rq_psn == 0x2000);
  CHECK(roce->path_mtu == IBV_MTU_1024);
  CHECK(roce->path.is_global == 1);
  CHECK(roce->path.port_num == 2);
  CHECK(roce->path.grh.sgid_index == 3);
  CHECK(roce->path.grh.traffic_class == 0x68);
  CHECK(roce->path.grh.hop_limit == 64);
  CHECK(std::memcmp(roce->path.grh.dgid.raw, remote.gid.raw, 16) == 0);

  remote.gid = {};
  remote.lid = 7;
  const auto infiniband = rtr_options(local, remote);
  REQUIRE(infiniband);
  CHECK(infiniband->path.is_global == 0);
  CHECK(infiniband->path.dlid == 7);

  remote.lid = 0;
  CHECK(rtr_options(local, remote).error().detail() == "the peer has neither a GID nor a LID");
  remote.lid = 7;
  const auto detail_of = [&](const qp_path_options& path) {
    const auto outcome = rtr_options(local, remote, path);
    return outcome ? std::string("accepted") : std::string(outcome.error().detail());
  };
  CHECK(detail_of({.port = 0}) == "qp_path_options.port 0 is outside 1..255");
  CHECK(detail_of({.sgid_index = 256}) == "qp_path_options.sgid_index 256 is outside 0..255");
  CHECK(detail_of({.hop_limit = -1}) == "qp_path_options.hop_limit -1 is outside 0..255");
  CHECK(detail_of({.traffic_class = 256}) == "qp_path_options.traffic_class 256 is outside 0..255");
  CHECK(detail_of({.service_level = 16}) == "qp_path_options.service_level 16 is outside 0..15");
  CHECK(detail_of({.flow_label = 1 << 20}) ==
        "qp_path_options.flow_label 1048576 is outside 0..1048575");
  remote.qpn = 1 << 24;
  CHECK(detail_of({}) == "qp_address.qpn 16777216 is above 16777215");
}

}  // namespace ibvxx::qp_modify_test
