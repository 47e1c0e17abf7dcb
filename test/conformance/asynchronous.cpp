// Asynchronous events: of queues, of the port, and of the address behind a GID.
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

/// A requester whose CQ is too small for what it does.
struct overrun {
  overrun(const setting& s, int cqe, std::uint64_t writes) : memory(s, 4096) {
    cq = make_cq(s, cqe);
    capacity = cq->cqe;
    qp = make_qp(s, cq.get());
    bring_to(s, qp.get(), IBV_QPS_RTS, qp->qp_num);
    for (std::uint64_t id = 1; id <= writes; ++id)
      request(id, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)})
          .remote(memory.address(64), memory.get()->rkey)
          .post(qp.get());
    wait_for(s.world.silence(), [] { return false; });
  }

  region memory;
  owned<ibv_cq> cq;
  owned<ibv_qp> qp;
  int capacity = 0;
};

void cq_overrun(const setting& s) {
  for (const int cqe : {1, 2, 3, 4, 7}) {
    const std::string prefix = "cq-of-" + std::to_string(cqe);
    // Exactly full is not too full.
    overrun exact(s, cqe, static_cast<std::uint64_t>(cqe));
    probe(prefix + "-capacity", std::to_string(exact.capacity));
    probe(prefix + "-full-events", settled_async_events(s));
    probe(prefix + "-full", completions(s, exact.cq.get(), static_cast<std::size_t>(cqe)));
  }
  for (const int cqe : {1, 3}) {
    const std::string prefix = "cq-of-" + std::to_string(cqe) + "-overrun";
    overrun o(s, cqe, static_cast<std::uint64_t>(cqe) + 3);
    probe(prefix + "-events", async_event_kinds(s, IBV_EVENT_CQ_ERR));
    probe(prefix + "-completions", completions(s, o.cq.get(), 0));
    probe(prefix + "-qp", name(state_of(o.qp.get())));
    request(99, IBV_WR_RDMA_WRITE, {o.memory.piece(0, 8)})
        .remote(o.memory.address(64), o.memory->rkey)
        .post(o.qp.get());
    wait_for(s.world.silence(), [] { return false; });
    probe(prefix + "-later-completions", completions(s, o.cq.get(), 0));
    const auto again = own(ibv_create_cq(s.context, 4, nullptr, nullptr, 0));
    probe(prefix + "-other-cq", again ? "made" : "refused");
    probe_code(prefix + "-req_notify_cq", [&] { return ibv_req_notify_cq(o.cq.get(), 0); });
  }
}

void unacknowledged(const setting& s) {
  const auto leave = [&](const char* what, bool acknowledge) {
    overrun o(s, 1, 4);
    ibv_async_event event{};
    std::size_t count = 0;
    std::size_t named = 0;
    wait_readable(s.context->async_fd, s.world.patience());
    while (ibv_get_async_event(s.context, &event) == 0) {
      ++count;
      if (event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == o.cq.get()) ++named;
      if (acknowledge) ibv_ack_async_event(&event);
    }
    probe(std::string(what) + "-name-the-cq", count == named ? "yes" : "no");
    o.qp.reset();
    ibv_cq* const cq = o.cq.release();
    probe(what, or_blocks(
                    s, [cq] { return ibv_destroy_cq(cq); },
                    [&] {
                      for (std::size_t i = 0; i < count; ++i) ibv_ack_async_event(&event);
                    }));
  };
  leave("destroy_cq-events-acknowledged", true);
  leave("destroy_cq-events-not-acknowledged", false);
  {
    overrun o(s, 1, 4);
    wait_readable(s.context->async_fd, s.world.patience());
    o.qp.reset();
    o.cq.reset();
    probe("events-of-a-destroyed-cq", async_events(s, 0));
  }
}

void of_queue_pairs(const setting& s) {
  connection_options options;
  {
    const auto cq = make_cq(s, 16);
    const auto qp = make_qp(s, cq.get());
    bring_to(s, qp.get(), IBV_QPS_RTS, qp->qp_num);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    probe("SQD-with-notify",
          code_name(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY)));
    probe("SQD-with-notify-events", async_events(s, 0));
  }
  {
    const auto cq = make_cq(s, 16);
    const auto qp = make_qp(s, cq.get());
    bring_to(s, qp.get(), IBV_QPS_SQD, qp->qp_num);
    probe("SQD-without-notify-events", async_events(s, 0));
  }
  {
    // A receive before RTS: IBV_EVENT_COMM_EST where the device raises it.
    const auto cq = make_cq(s, 16);
    side requester(s, options, nullptr);
    const auto qp = make_qp(s, cq.get());
    bring_to(s, qp.get(), IBV_QPS_RTR, requester.qp->qp_num);
    bring_to(s, requester.qp.get(), IBV_QPS_RTS, qp->qp_num);
    post_receive(qp.get(), 1, {requester.memory.piece(0, 64)});
    request(2, IBV_WR_SEND, {requester.memory.piece(64, 8)}).post(requester.qp.get());
    probe("receive-in-RTR", completions(s, cq.get(), 1));
    probe("receive-in-RTR-events", async_events(s, 0));
  }
  {
    const auto cq = make_cq(s, 16);
    const auto qp = make_qp(s, cq.get());
    bring_to(s, qp.get(), IBV_QPS_RTS, qp->qp_num);
    modify_state(qp.get(), IBV_QPS_ERR);
    probe("ERR-events", async_events(s, 0));
  }
}

std::string port_state(const setting& s) {
  ibv_port_attr attr{};
  ibv_query_port(s.context, 1, &attr);
  return std::to_string(attr.state) + " phys " + std::to_string(attr.phys_state);
}

std::string gid_state(const setting& s, int index) {
  ibv_gid_entry entry{};
  const int code = ibv_query_gid_ex(s.context, 1, static_cast<std::uint32_t>(index), &entry, 0);
  return code == 0 ? "there" : code_name(code);
}

bool port_is(const setting& s, ibv_port_state state) {
  ibv_port_attr attr{};
  return ibv_query_port(s.context, 1, &attr) == 0 && attr.state == state;
}

void port(const setting& s) {
  connection c(s);
  connection_options unreliable;
  unreliable.type = IBV_QPT_UC;
  connection u(s, unreliable);
  unreliable.type = IBV_QPT_UD;
  connection d(s, unreliable);
  ibv_qp_attr usual = usual_attributes(s, 0);
  const auto ah = own(ibv_create_ah(s.pd, &usual.ah_attr));
  const auto cq = make_cq(s, 4);
  const auto write = [&](std::uint64_t id) {
    request(id, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)})
        .remote(c.responder.memory.address(), c.responder.memory->rkey)
        .post(c.requester.qp.get());
    return completions(s, c.requester.cq.get(), 1);
  };
  probe("port-up", port_state(s));
  s.world.set_port(false);
  probe("port-down-events", async_event_kinds(s, IBV_EVENT_PORT_ERR));
  wait_for(s.world.patience(), [&] { return port_is(s, IBV_PORT_DOWN); });
  probe("port-down", port_state(s));
  probe("port-down-gid-0", gid_state(s, 0));
  probe("port-down-gid-1", gid_state(s, 1));
  probe("port-down-loopback-write", write(1));
  own(probe_pointer("port-down-create_cq",
                    [&] { return ibv_create_cq(s.context, 4, nullptr, nullptr, 0); }));
  probe("port-down-qp", name(state_of(c.requester.qp.get())));
  const auto qp = make_qp(s, cq.get());
  bring_to(s, qp.get(), IBV_QPS_INIT, qp->qp_num);
  ibv_qp_attr attr = usual_attributes(s, qp->qp_num);
  attr.qp_state = IBV_QPS_RTR;
  probe("port-down-INIT-RTR",
        code_name(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | rtr_mask(IBV_QPT_RC))));
  attr.ah_attr.grh.sgid_index = 0;
  need(ibv_query_gid(s.context, 1, 0, &attr.ah_attr.grh.dgid) == 0, "ibv_query_gid");
  probe("port-down-INIT-RTR-link-local",
        code_name(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | rtr_mask(IBV_QPT_RC))));
  attr = usual_attributes(s, qp->qp_num);
  attr.qp_state = IBV_QPS_RTR;
  // What is missing does not count as long as there is no way.
  probe("port-down-INIT-RTR-only-av",
        code_name(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_AV)));
  own(probe_pointer("port-down-create_ah", [&] { return ibv_create_ah(s.pd, &attr.ah_attr); }));
  request(5, IBV_WR_SEND, {u.requester.memory.piece(0, 8)}).post(u.requester.qp.get());
  probe("port-down-uc-send", completions(s, u.requester.cq.get(), 1) + ", " +
                                 state_after(s, u.requester.qp.get(), IBV_QPS_ERR));
  request(6, IBV_WR_SEND, {d.requester.memory.piece(0, 8)})
      .datagram(ah.get(), d.responder.qp->qp_num)
      .post(d.requester.qp.get());
  probe("port-down-ud-send", completions(s, d.requester.cq.get(), 1) + ", " +
                                 state_after(s, d.requester.qp.get(), IBV_QPS_ERR));
  s.world.set_port(true);
  probe("port-up-again-events", async_event_kinds(s, IBV_EVENT_PORT_ACTIVE));
  wait_for(s.world.patience(), [&] { return port_is(s, IBV_PORT_ACTIVE); });
  probe("port-up-again", port_state(s));
  probe("port-up-again-loopback-write", write(2));
}

/// Case 32.
void address(const setting& s) {
  // Nothing may use the GID meanwhile: the kernel would keep its slot, and give another one to the
  // address when it comes back.
  probe("gid-1", gid_state(s, 1));
  s.world.set_address(false);
  probe("gid-1-removed-events", async_event_kinds(s, IBV_EVENT_GID_CHANGE));
  wait_for(s.world.patience(), [&] { return gid_state(s, 1) != "there"; });
  probe("gid-1-removed", gid_state(s, 1));
  ibv_gid gid{};
  probe_minus_one("gid-1-removed-query_gid", [&] { return ibv_query_gid(s.context, 1, 1, &gid); });
  const auto cq = make_cq(s, 4);
  const auto qp = make_qp(s, cq.get());
  bring_to(s, qp.get(), IBV_QPS_INIT, qp->qp_num);
  ibv_qp_attr attr = usual_attributes(s, qp->qp_num);
  attr.qp_state = IBV_QPS_RTR;
  probe("gid-1-removed-INIT-RTR",
        code_name(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | rtr_mask(IBV_QPT_RC))));
  s.world.set_address(true);
  probe("gid-1-back-events", async_event_kinds(s, IBV_EVENT_GID_CHANGE));
  wait_for(s.world.patience(), [&] { return gid_state(s, 1) == "there"; });
  probe("gid-1-back", gid_state(s, 1));
  attr.qp_state = IBV_QPS_RTR;
  probe("gid-1-back-INIT-RTR",
        code_name(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | rtr_mask(IBV_QPT_RC))));
}

}  // namespace

void probe_async(const setting& s) {
  cq_overrun(s);
  unacknowledged(s);
  of_queue_pairs(s);
}

void probe_world(const setting& s) {
  port(s);
  address(s);
}

}  // namespace conformance
