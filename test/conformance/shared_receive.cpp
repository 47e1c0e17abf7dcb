// Shared receive queues: creation, limits, modification, receiving, the limit event.
#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

std::string told(const ibv_srq_attr& attr) {
  return std::to_string(attr.max_wr) + "x" + std::to_string(attr.max_sge) + " limit " +
         std::to_string(attr.srq_limit);
}

owned<ibv_srq> make_srq(const setting& s, std::uint32_t wr, std::uint32_t sge) {
  ibv_srq_init_attr wanted{};
  wanted.attr = {wr, sge, 0};
  owned<ibv_srq> made(ibv_create_srq(s.pd, &wanted));
  need(made != nullptr, "ibv_create_srq");
  return made;
}

void creation(const setting& s) {
  ibv_device_attr limits{};
  ibv_query_device(s.context, &limits);
  const auto create = [&](const std::string& what, std::uint32_t wr, std::uint32_t sge,
                          std::uint32_t limit = 0) {
    ibv_srq_init_attr wanted{};
    wanted.attr = {wr, sge, limit};
    const auto srq =
        own(probe_pointer("create-" + what, [&] { return ibv_create_srq(s.pd, &wanted); }));
    if (!srq) return;
    ibv_srq_attr asked{};
    ibv_query_srq(srq.get(), &asked);
    probe("create-" + what + "-got", told(wanted.attr) + ", queried " + told(asked));
    if (wr > 1000 || sge == 0) return;
    unsigned fitted = 0;
    int code = 0;
    while (fitted < 5000 && (code = post_receive(srq.get(), fitted, {})) == 0) ++fitted;
    probe("create-" + what + "-fits", std::to_string(fitted) + ", then " + code_name(code));
  };
  for (const unsigned wr : {0U, 1U, 2U, 3U, 4U, 7U, 8U, 15U, 16U, 17U, 100U})
    create(std::to_string(wr), wr, 1);
  const auto max_wr = static_cast<unsigned>(limits.max_srq_wr);
  const auto max_sge = static_cast<unsigned>(limits.max_srq_sge);
  create("wr-beyond", max_wr + 1, 1);
  create("wr-huge", 0xffffffff, 1);
  create("sge-0", 4, 0);
  create("sge-limit", 4, max_sge);
  create("sge-beyond", 4, max_sge + 1);
  create("sge-huge", 4, 0xffffffff);
  create("with-limit", 8, 1, 4);
  create("with-limit-beyond", 8, 1, 9);
}

void extended_creation(const setting& s) {
  const auto create = [&](const std::string& what, auto&& change) {
    ibv_srq_init_attr_ex attr{};
    attr.attr = {4, 1, 0};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    attr.srq_type = IBV_SRQT_BASIC;
    attr.pd = s.pd;
    change(attr);
    return own(probe_pointer("create_srq_ex-" + what,
                             [&] { return ibv_create_srq_ex(s.context, &attr); }));
  };
  const auto basic = create("basic", [](ibv_srq_init_attr_ex&) {});
  if (basic) {
    std::uint32_t number = 0;
    probe_code("get_srq_num-basic", [&] { return ibv_get_srq_num(basic.get(), &number); });
  }
  create("pd-only", [](ibv_srq_init_attr_ex& attr) { attr.comp_mask = IBV_SRQ_INIT_ATTR_PD; });
  create("unknown-comp_mask", [](ibv_srq_init_attr_ex& attr) { attr.comp_mask |= 1U << 31; });
  const auto cq = make_cq(s, 4);
  create("tag-matching", [&](ibv_srq_init_attr_ex& attr) {
    attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
    attr.srq_type = IBV_SRQT_TM;
    attr.cq = cq.get();
    attr.tm_cap = {4, 4};
  });
  // Each type with each of the attributes that are not a basic queue's.
  const struct {
    const char* name;
    unsigned mask;
  } masks[] = {{"plain", 0}, {"cq", IBV_SRQ_INIT_ATTR_CQ}, {"tm", IBV_SRQ_INIT_ATTR_TM}};
  for (const int type : {0, 1, 2, 3})
    for (const auto& one : masks)
      create("type-" + std::to_string(type) + "-" + one.name, [&](ibv_srq_init_attr_ex& attr) {
        attr.comp_mask |= one.mask;
        attr.srq_type = static_cast<ibv_srq_type>(type);
        attr.cq = cq.get();
        attr.tm_cap = {4, 4};
      });
}

void modification(const setting& s) {
  const auto srq = make_srq(s, 8, 2);
  const auto modify = [&](const std::string& what, const ibv_srq_attr& wanted, int mask) {
    ibv_srq_attr attr = wanted;
    probe_code("modify-" + what, [&] { return ibv_modify_srq(srq.get(), &attr, mask); });
    ibv_srq_attr asked{};
    ibv_query_srq(srq.get(), &asked);
    probe("modify-" + what + "-then", told(asked));
  };
  modify("nothing", {}, 0);
  modify("limit-4", {0, 0, 4}, IBV_SRQ_LIMIT);
  modify("limit-0", {0, 0, 0}, IBV_SRQ_LIMIT);
  modify("limit-at-max_wr", {0, 0, 8}, IBV_SRQ_LIMIT);
  modify("limit-beyond", {0, 0, 100}, IBV_SRQ_LIMIT);
  modify("limit-huge", {0, 0, 0xffffffff}, IBV_SRQ_LIMIT);
  modify("unknown-mask", {0, 0, 1}, 1 << 5);
  modify("max_wr-20", {20, 0, 0}, IBV_SRQ_MAX_WR);
  modify("max_wr-0", {0, 0, 0}, IBV_SRQ_MAX_WR);
  modify("max_wr-beyond", {1048577, 0, 0}, IBV_SRQ_MAX_WR);
  modify("max_wr-below-limit", {4, 0, 0}, IBV_SRQ_MAX_WR);
  modify("both", {16, 0, 2}, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
  modify("both-limit-beyond", {16, 0, 17}, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
}

void posting(const setting& s) {
  const auto srq = make_srq(s, 4, 2);
  const region memory(s, 4096);
  const ibv_sge piece = memory.piece(0, 16);
  probe("post-two-pieces", code_name(post_receive(srq.get(), 1, {piece, piece})));
  probe("post-three-pieces", code_name(post_receive(srq.get(), 2, {piece, piece, piece})));
  probe("post-no-piece", code_name(post_receive(srq.get(), 3, {})));
  probe("post-unknown-lkey", code_name(post_receive(srq.get(), 4, {{piece.addr, 16, 0x7fffff01}})));
  ibv_sge pieces[3] = {piece, piece, piece};
  ibv_recv_wr third{13, nullptr, pieces, 1};
  ibv_recv_wr second{12, &third, pieces, 3};
  ibv_recv_wr first{11, &second, pieces, 1};
  ibv_recv_wr* bad = nullptr;
  probe("post-list-with-bad-second", code_name(ibv_post_srq_recv(srq.get(), &first, &bad)));
  probe("post-list-bad_wr", bad == &second ? "second" : bad == nullptr ? "NULL" : "other");
}

connection_options with(ibv_srq* srq) {
  connection_options options;
  options.srq = srq;
  return options;
}

void receiving(const setting& s) {
  const auto srq = make_srq(s, 16, 2);
  connection first(s, with(srq.get()));
  connection second(s, with(srq.get()));
  region memory(s, 4096);
  for (std::uint64_t id = 1; id <= 3; ++id)
    post_receive(srq.get(), id, {memory.piece(id * 64, 64)});
  const auto send = [&](connection& c, std::uint64_t id, std::size_t length) {
    return request(id, IBV_WR_SEND, {c.requester.memory.piece(0, length)})
        .post(c.requester.qp.get());
  };
  // One after the other: the order in which two queue pairs take receives is not determined.
  send(first, 21, 10);
  probe("receive-on-first", completions(s, first.responder.cq.get(), 1));
  send(second, 22, 20);
  probe("receive-on-second", completions(s, second.responder.cq.get(), 1));
  send(first, 23, 30);
  probe("receive-on-first-again", completions(s, first.responder.cq.get(), 1));
  collect(s, first.requester.cq.get(), 2);
  collect(s, second.requester.cq.get(), 1);
  // None left: the sender waits until one is posted.
  send(second, 24, 40);
  probe("send-without-receive", completions(s, second.requester.cq.get(), 0));
  post_receive(srq.get(), 4, {memory.piece(0, 64)});
  probe("send-after-receive-is-posted", completions(s, second.requester.cq.get(), 1));
  probe("receive-posted-late", completions(s, second.responder.cq.get(), 1));
}

void limit_event(const setting& s) {
  const auto srq = make_srq(s, 16, 1);
  connection c(s, with(srq.get()));
  region memory(s, 4096);
  for (std::uint64_t id = 1; id <= 4; ++id)
    post_receive(srq.get(), id, {memory.piece(id * 64, 64)});
  ibv_srq_attr attr{0, 0, 3};
  probe_code("limit-3-of-4", [&] { return ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT); });
  const auto send = [&](std::uint64_t id) {
    request(id, IBV_WR_SEND, {c.requester.memory.piece(0, 8)}).post(c.requester.qp.get());
    collect(s, c.requester.cq.get(), 1);
  };
  probe("limit-before", async_events(s, 0));
  send(1);
  probe("limit-when-3-are-left", async_events(s, 0));
  send(2);
  probe("limit-when-2-are-left", async_events(s, 1));
  ibv_query_srq(srq.get(), &attr);
  probe("limit-afterwards", told(attr));
  send(3);
  probe("limit-comes-once", async_events(s, 0));
  // A limit above the number of posted receives.
  attr = {0, 0, 5};
  probe_code("limit-above-what-is-there",
             [&] { return ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT); });
  probe("limit-above-what-is-there-event", async_events(s, 0));
}

void leaving(const setting& s) {
  const auto srq = make_srq(s, 16, 1);
  connection c(s, with(srq.get()));
  region memory(s, 4096);
  post_receive(srq.get(), 1, {memory.piece(0, 64)});
  probe_code("destroy-with-qp", [&] { return ibv_destroy_srq(srq.get()); });
  probe("to-err", code_name(modify_state(c.responder.qp.get(), IBV_QPS_ERR)));
  probe("to-err-events", async_events(s, 0));
  probe("to-err-completions", completions(s, c.responder.cq.get(), 0));
  // The receive still belongs to the queue, for another one to take.
  connection d(s, with(srq.get()));
  request(2, IBV_WR_SEND, {d.requester.memory.piece(0, 8)}).post(d.requester.qp.get());
  probe("receive-taken-by-another", completions(s, d.responder.cq.get(), 1));
}

void too_long(const setting& s) {
  const auto srq = make_srq(s, 16, 1);
  connection c(s, with(srq.get()));
  region memory(s, 4096);
  post_receive(srq.get(), 1, {memory.piece(0, 8)});
  request(2, IBV_WR_SEND, {c.requester.memory.piece(0, 16)}).post(c.requester.qp.get());
  probe("too-long-sender", completions(s, c.requester.cq.get(), 1));
  probe("too-long-receiver", completions(s, c.responder.cq.get(), 0));
  probe("too-long-receiver-state", state_after(s, c.responder.qp.get(), IBV_QPS_ERR));
}

}  // namespace

void probe_srq(const setting& s) {
  creation(s);
  extended_creation(s);
  modification(s);
  posting(s);
}

void probe_shared_receive(const setting& s) {
  receiving(s);
  limit_event(s);
  leaving(s);
  too_long(s);
}

}  // namespace conformance
