// Completion channels and completion queues: creation, capacity, resizing, polling.
#include <unistd.h>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

void creation(const setting& s) {
  const auto create = [&](const std::string& what, int cqe, int vector = 0) {
    const auto cq = own(probe_pointer("create_cq-" + what, [&] {
      return ibv_create_cq(s.context, cqe, nullptr, nullptr, vector);
    }));
    if (cq) probe("create_cq-" + what + "-capacity", std::to_string(cq->cqe));
  };
  for (const int cqe : {-2147483647 - 1, -1, 0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 100, 1000, 32766,
                        32767, 32768, 2147483647})
    create(std::to_string(cqe), cqe);
  const int vectors = s.context->num_comp_vectors;
  create("vector-minus-one", 4, -1);
  create("vector-last", 4, vectors - 1);
  create("vector-beyond", 4, vectors);
  create("vector-far-beyond", 4, 1000);
  int cookie = 0;
  const auto channel = own(ibv_create_comp_channel(s.context));
  const auto cq = own(ibv_create_cq(s.context, 4, &cookie, channel.get(), 0));
  probe("create_cq-fields", std::string(cq->context == s.context ? "context " : "other-context ") +
                                (cq->channel == channel.get() ? "channel " : "other-channel ") +
                                (cq->cq_context == &cookie ? "cookie" : "other-cookie"));
  const auto stranger = own(ibv_open_device(s.context->device));
  const auto foreign = own(ibv_create_comp_channel(stranger.get()));
  own(probe_pointer("create_cq-channel-of-other-context",
                    [&] { return ibv_create_cq(s.context, 4, nullptr, foreign.get(), 0); }));
}

void extended_creation(const setting& s) {
  const auto create = [&](const std::string& what, auto&& change) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 4;
    change(attr);
    ibv_cq_ex* const cq =
        probe_pointer("create_cq_ex-" + what, [&] { return ibv_create_cq_ex(s.context, &attr); });
    if (cq) ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
  };
  create("plain", [](ibv_cq_init_attr_ex&) {});
  create("standard-flags",
         [](ibv_cq_init_attr_ex& attr) { attr.wc_flags = IBV_WC_STANDARD_FLAGS; });
  create("cqe-0", [](ibv_cq_init_attr_ex& attr) { attr.cqe = 0; });
  create("cqe-beyond", [](ibv_cq_init_attr_ex& attr) { attr.cqe = 32768; });
  create("vector-beyond", [](ibv_cq_init_attr_ex& attr) { attr.comp_vector = 1000; });
  const struct {
    const char* name;
    unsigned long long flag;
  } flags[] = {{"timestamp", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP},
               {"cvlan", IBV_WC_EX_WITH_CVLAN},
               {"flow-tag", IBV_WC_EX_WITH_FLOW_TAG},
               {"tm-info", IBV_WC_EX_WITH_TM_INFO},
               {"wallclock", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK},
               {"wc-flag-63", 1ULL << 63}};
  for (const auto& one : flags)
    create(one.name, [&](ibv_cq_init_attr_ex& attr) { attr.wc_flags = one.flag; });
  create("comp_mask-unknown", [](ibv_cq_init_attr_ex& attr) { attr.comp_mask = 1U << 31; });
  create("single-threaded", [](ibv_cq_init_attr_ex& attr) {
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  });
  create("ignore-overrun", [](ibv_cq_init_attr_ex& attr) {
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  });
  create("unknown-flag", [](ibv_cq_init_attr_ex& attr) {
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = 1U << 31;
  });
}

void resizing(const setting& s) {
  const auto cq = make_cq(s, 4);
  for (const int cqe : {0, -1, 2, 8, 100, 1, 32767, 32768}) {
    const std::string what = "resize_cq-" + std::to_string(cqe);
    probe_code(what, [&] { return ibv_resize_cq(cq.get(), cqe); });
    probe(what + "-capacity", std::to_string(cq->cqe));
  }
  connection c(s);
  for (std::uint64_t id = 1; id <= 5; ++id)
    request(id, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)})
        .remote(c.responder.memory.address(), c.responder.memory->rkey)
        .post(c.requester.qp.get());
  // The last one has arrived when its data has; the CQ must not be polled for that.
  request(6, IBV_WR_SEND, {c.requester.memory.piece(0, 8)}).post(c.requester.qp.get());
  post_receive(c.responder.qp.get(), 7, {c.responder.memory.piece(64, 8)});
  collect(s, c.responder.cq.get(), 1);
  // The sender's completions follow a little later, with the acknowledgement.
  wait_for(s.world.silence(), [] { return false; });
  probe_code("resize_cq-below-what-it-holds",
             [&] { return ibv_resize_cq(c.requester.cq.get(), 2); });
  probe_code("resize_cq-to-what-it-holds", [&] { return ibv_resize_cq(c.requester.cq.get(), 6); });
  probe("resize_cq-keeps", completions(s, c.requester.cq.get(), 6));
}

void polling(const setting& s) {
  const auto cq = make_cq(s, 4);
  ibv_wc completions_[4] = {};
  const auto poll = [&](const char* what, int count) {
    errno = untouched;
    const int polled = ibv_poll_cq(cq.get(), count, completions_);
    probe(std::string("poll_cq-empty-") + what, std::to_string(polled));
  };
  poll("for-0", 0);
  poll("for-1", 1);
  poll("for-4", 4);
  poll("for-minus-one", -1);
  probe_code("req_notify_cq-without-channel", [&] { return ibv_req_notify_cq(cq.get(), 0); });
  probe_code("req_notify_cq-again", [&] { return ibv_req_notify_cq(cq.get(), 0); });
  probe_code("req_notify_cq-solicited", [&] { return ibv_req_notify_cq(cq.get(), 1); });
  probe_code("req_notify_cq-solicited-2", [&] { return ibv_req_notify_cq(cq.get(), 2); });

  connection c(s);
  for (std::uint64_t id = 1; id <= 5; ++id)
    request(id, IBV_WR_RDMA_WRITE, {c.requester.memory.piece(0, 8)})
        .remote(c.responder.memory.address(), c.responder.memory->rkey)
        .post(c.requester.qp.get());
  request(6, IBV_WR_SEND, {c.requester.memory.piece(0, 8)}).post(c.requester.qp.get());
  post_receive(c.responder.qp.get(), 7, {c.responder.memory.piece(64, 8)});
  collect(s, c.responder.cq.get(), 1);
  wait_for(s.world.silence(), [] { return false; });
  probe("poll_cq-3-of-6", std::to_string(ibv_poll_cq(c.requester.cq.get(), 3, completions_)));
  probe("poll_cq-first", told(completions_[0]));
  probe("poll_cq-qp_num", completions_[0].qp_num == c.requester.qp->qp_num ? "right" : "wrong");
  probe("poll_cq-rest", std::to_string(ibv_poll_cq(c.requester.cq.get(), 4, completions_)));
  probe("poll_cq-last", told(completions_[2]));
}

}  // namespace

void probe_cq(const setting& s) {
  creation(s);
  extended_creation(s);
  resizing(s);
  polling(s);
}

void probe_channel(const setting& s) {
  const auto channel =
      own(probe_pointer("create", [&] { return ibv_create_comp_channel(s.context); }));
  probe("fields", std::string(channel->context == s.context ? "context " : "other-context ") +
                      (channel->fd >= 0 ? "fd " : "no-fd ") + std::to_string(channel->refcnt));
  probe("blocking-by-default",
        wait_readable(channel->fd, s.world.silence()) ? "readable" : "not readable");
  set_non_blocking(channel->fd);
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  probe_minus_one("get_cq_event-empty",
                  [&] { return ibv_get_cq_event(channel.get(), &cq, &cookie); });
  {
    const auto first = make_cq(s, 4, channel.get());
    const auto second = make_cq(s, 4, channel.get());
    probe("refcnt-with-two-cqs", std::to_string(channel->refcnt));
    probe_code("destroy-with-two-cqs", [&] { return ibv_destroy_comp_channel(channel.get()); });
  }
  probe("refcnt-afterwards", std::to_string(channel->refcnt));
  ibv_async_event event{};
  probe_minus_one("get_async_event-empty", [&] { return ibv_get_async_event(s.context, &event); });
  ibv_comp_channel* const other = ibv_create_comp_channel(s.context);
  probe_code("destroy", [&] { return ibv_destroy_comp_channel(other); });
}

}  // namespace conformance
