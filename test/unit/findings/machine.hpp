// What the tests of findings run on. The smallest program that raises each finding stands between
// "// finding: NAME" and "// end" in its test; test/lib/findings_table.py puts it into
// docs/findings.md. A test of a program that is right and close to a wrong one says
// "// no finding: NAME".
#pragma once

#include <infiniband/verbs.h>

#include <ibvxx/or_throw.hpp>
#include <initializer_list>
#include <optional>
#include <string>

#include "suite.hpp"
#include "support/every_object.hpp"
#include "support/loopback.hpp"
#include "support/trace.hpp"

namespace ibvxx::test {

using shim::finding_kind;

/// An open device that offers everything, and two connected queue pairs, as raw as C programs have
/// them.
struct machine {
  shim::session s;
  std::optional<loopback> objects{std::in_place};

  ibv_context* context = objects->context.get();
  ibv_pd* pd = objects->pd.get();
  ibv_comp_channel* channel = objects->channel.get();
  ibv_cq* cq = objects->send_cq.get();             // of both queue pairs, for sends
  ibv_cq* receive_cq = objects->receive_cq.get();  // and for receives
  ibv_qp* qp = objects->a.get();                   // in RTS
  ibv_qp* peer = objects->b.get();                 // what it is connected to
  std::byte* memory = objects->memory;             // 256 bytes,
  ibv_mr* mr = objects->region.get();              // registered
  ibv_cq_ex* polled = make_polled();

  ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory), 16, mr->lkey};
  ibv_recv_wr receive{7, nullptr, &piece, 1};
  ibv_send_wr write = make_write();  // to the peer, signaled
  ibv_recv_wr* bad_receive = nullptr;
  ibv_send_wr* bad_send = nullptr;

  machine() : machine({.strict = true, .destroy_deadline = std::chrono::milliseconds(2)}) {}
  explicit machine(const shim::session_options& options)
      : s({{shim::device_description::hardware()}}, options) {}
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  [[nodiscard]] ibv_send_wr make_write() {
    ibv_send_wr request{};
    request.wr_id = 9;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {reinterpret_cast<std::uintptr_t>(memory) + 128, mr->rkey};
    return request;
  }
  /// Another queue pair like the two, in RESET.
  [[nodiscard]] ibv_qp_init_attr queue_pair() const {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = cq;
    attributes.recv_cq = receive_cq;
    attributes.cap = {16, 16, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    return attributes;
  }
  /// Ends the program and the session.
  [[nodiscard]] std::vector<shim::finding> finish() {
    ::ibv_destroy_cq(::ibv_cq_ex_to_cq(polled));
    objects.reset();
    return s.finish();
  }
  /// The program did that, and nothing else.
  void check(finding_kind kind, std::initializer_list<const char*> texts) {
    const auto findings = finish();
    INFO(lines(findings));
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].kind == kind);
    for (const char* text : texts) {
      INFO("expected: " << text);
      CHECK(findings[0].text.find(text) != std::string::npos);
    }
    CHECK(findings[0].text.find(shim::advice(kind)) != std::string::npos);
  }
  void check_clean() {
    const auto findings = finish();
    INFO(lines(findings));
    CHECK(findings.empty());
  }

 private:
  [[nodiscard]] ibv_cq_ex* make_polled() const {
    auto attributes = every_object::extended_cq();
    return ::ibv_create_cq_ex(context, &attributes);
  }
};

}  // namespace ibvxx::test
