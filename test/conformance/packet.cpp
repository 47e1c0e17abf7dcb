// Two sides that do not agree on the path MTU: how messages are cut, and what the other side makes
// of the pieces.
#include <algorithm>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

/// Gives up after tens of milliseconds.
connection_options impatient(ibv_qp_type type) {
  connection_options options;
  options.type = type;
  options.timeout = 10;
  options.retries = 1;
  return options;
}

/// RESET to RTS with a path MTU of one's own.
void bring_up(const setting& s, const side& from, const side& to, ibv_mtu mtu,
              const connection_options& options) {
  bring_to(s, from.qp.get(), IBV_QPS_INIT, to.qp->qp_num, options);
  ibv_qp_attr attr = usual_attributes(s, to.qp->qp_num, options);
  attr.path_mtu = mtu;
  attr.qp_state = IBV_QPS_RTR;
  need(ibv_modify_qp(from.qp.get(), &attr, IBV_QP_STATE | rtr_mask(options.type)) == 0, "RTR");
  attr.qp_state = IBV_QPS_RTS;
  need(ibv_modify_qp(from.qp.get(), &attr, IBV_QP_STATE | rts_mask(options.type)) == 0, "RTS");
}

const char* verdict(bool there) {
  return there ? "data there" : "no data";
}

/// One message of a length, and a second one: is the sequence still right?
void exchange(const setting& s, const std::string& what, ibv_qp_type type, ibv_wr_opcode opcode,
              ibv_mtu near, ibv_mtu far, std::size_t length) {
  const connection_options options = impatient(type);
  side requester(s, options, nullptr);
  side responder(s, options, nullptr);
  bring_up(s, responder, requester, far, options);
  bring_up(s, requester, responder, near, options);
  const bool reads = opcode == IBV_WR_RDMA_READ;
  region& source = reads ? responder.memory : requester.memory;
  region& target = reads ? requester.memory : responder.memory;
  source.fill(0, length, 5);
  for (std::uint64_t id = 1; id <= 2; ++id) {
    if (opcode == IBV_WR_SEND)
      post_receive(responder.qp.get(), 10 + id, {responder.memory.piece(0, 8192)});
    request(id, opcode, {requester.memory.piece(0, length)})
        .remote(responder.memory.address(), responder.memory->rkey)
        .post(requester.qp.get());
    std::string told = completions(s, requester.cq.get(), 1);
    const bool failed = told.find("SUCCESS") == std::string::npos;
    told += ", " + (failed ? state_after(s, requester.qp.get(), IBV_QPS_ERR)
                           : name(state_of(requester.qp.get())));
    told += "; responder " + settled_completions(s, responder.cq.get()) + ", " +
            name(state_of(responder.qp.get()));
    told += std::string(", ") + verdict(target.filled(0, length, 5));
    probe(what + (id == 1 ? "" : "-again"), told);
    if (failed) break;
    target.fill(0, length, 77);
  }
}

/// A write with immediate takes its receive with the last packet only.
void with_immediate(const setting& s, const std::string& what, ibv_mtu near, ibv_mtu far,
                    std::size_t length, bool receives, std::uint32_t spoilt_bits = 0,
                    ibv_qp_type type = IBV_QPT_RC) {
  connection_options options = impatient(type);
  options.rnr_retries = 1;
  side requester(s, options, nullptr);
  side responder(s, options, nullptr);
  bring_up(s, responder, requester, far, options);
  bring_up(s, requester, responder, near, options);
  requester.memory.fill(0, length, 5);
  if (receives) post_receive(responder.qp.get(), 11, {responder.memory.piece(8192, 64)});
  request(1, IBV_WR_RDMA_WRITE_WITH_IMM, {requester.memory.piece(0, length)})
      .remote(responder.memory.address(), responder.memory->rkey ^ spoilt_bits)
      .post(requester.qp.get());
  std::string told = completions(s, requester.cq.get(), 1);
  told += "; responder " + settled_completions(s, responder.cq.get()) + ", " +
          name(state_of(responder.qp.get()));
  const bool whole = responder.memory.filled(0, length, 5);
  const bool first = responder.memory.filled(0, std::min<std::size_t>(length, 1024), 5);
  probe(what, told + ", " + (whole ? "all data" : first ? "the first packet" : "no data"));
}

void immediates(const setting& s) {
  for (const std::size_t length : {std::size_t{200}, std::size_t{300}, std::size_t{1100}}) {
    const std::string suffix = "-write-with-imm-" + std::to_string(length);
    with_immediate(s, "RC-256-to-1024" + suffix, IBV_MTU_256, IBV_MTU_1024, length, true);
    with_immediate(s, "RC-1024-to-256" + suffix, IBV_MTU_1024, IBV_MTU_256, length, true);
    with_immediate(s, "RC-1024-to-256" + suffix + "-no-receive", IBV_MTU_1024, IBV_MTU_256, length,
                   false);
  }
  for (const std::size_t length : {std::size_t{64}, std::size_t{1024}, std::size_t{2500}}) {
    const std::string suffix = "-" + std::to_string(length);
    with_immediate(s, "write-with-imm" + suffix, IBV_MTU_1024, IBV_MTU_1024, length, true);
    with_immediate(s, "write-with-imm-no-receive" + suffix, IBV_MTU_1024, IBV_MTU_1024, length,
                   false);
    with_immediate(s, "UC-write-with-imm" + suffix, IBV_MTU_1024, IBV_MTU_1024, length, true, 0,
                   IBV_QPT_UC);
    with_immediate(s, "UC-write-with-imm-no-receive" + suffix, IBV_MTU_1024, IBV_MTU_1024, length,
                   false, 0, IBV_QPT_UC);
    with_immediate(s, "write-with-imm-bad-rkey" + suffix, IBV_MTU_1024, IBV_MTU_1024, length, true,
                   1);
    with_immediate(s, "write-with-imm-bad-rkey-no-receive" + suffix, IBV_MTU_1024, IBV_MTU_1024,
                   length, false, 1);
  }
}

}  // namespace

void probe_packet(const setting& s) {
  immediates(s);
  const struct {
    const char* name;
    ibv_mtu near, far;
  } sides[] = {{"256-to-1024", IBV_MTU_256, IBV_MTU_1024},
               {"1024-to-256", IBV_MTU_1024, IBV_MTU_256},
               {"1024-to-4096", IBV_MTU_1024, IBV_MTU_4096}};
  const struct {
    const char* name;
    ibv_wr_opcode opcode;
  } operations[] = {
      {"send", IBV_WR_SEND}, {"write", IBV_WR_RDMA_WRITE}, {"read", IBV_WR_RDMA_READ}};
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC})
    for (const auto& pair : sides)
      for (const auto& operation : operations) {
        if (type == IBV_QPT_UC && operation.opcode == IBV_WR_RDMA_READ) continue;
        for (const std::size_t length : {std::size_t{200}, std::size_t{300}, std::size_t{1024},
                                         std::size_t{1100}, std::size_t{4000}})
          exchange(
              s, name(type) + "-" + pair.name + "-" + operation.name + "-" + std::to_string(length),
              type, operation.opcode, pair.near, pair.far, length);
      }
}

}  // namespace conformance
