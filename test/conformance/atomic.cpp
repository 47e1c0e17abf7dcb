// Atomic operations.
#include <cstring>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

std::uint64_t load(region& memory, std::size_t offset) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory.data() + offset, sizeof value);
  return value;
}

void store(region& memory, std::size_t offset, std::uint64_t value) {
  std::memcpy(memory.data() + offset, &value, sizeof value);
}

void values(const setting& s) {
  connection c(s);
  const auto operate = [&](const std::string& what, ibv_wr_opcode opcode, std::uint64_t before,
                           std::uint64_t compare_add, std::uint64_t swap) {
    store(c.responder.memory, 64, before);
    store(c.requester.memory, 8, 0x5555);
    request(1, opcode, {c.requester.memory.piece(8, 8)})
        .atomic(c.responder.memory.address(64), c.responder.memory->rkey, compare_add, swap)
        .post(c.requester.qp.get());
    const std::string told = completions(s, c.requester.cq.get(), 1);
    probe(what, told + ", there " + hex(load(c.responder.memory, 64)) + ", here " +
                    hex(load(c.requester.memory, 8)));
  };
  operate("cmp_and_swp-equal", IBV_WR_ATOMIC_CMP_AND_SWP, 10, 10, 20);
  operate("cmp_and_swp-unequal", IBV_WR_ATOMIC_CMP_AND_SWP, 10, 11, 20);
  operate("cmp_and_swp-wide", IBV_WR_ATOMIC_CMP_AND_SWP, 0x0102030405060708, 0x0102030405060708,
          0x1112131415161718);
  operate("fetch_and_add", IBV_WR_ATOMIC_FETCH_AND_ADD, 10, 5, 0);
  operate("fetch_and_add-zero", IBV_WR_ATOMIC_FETCH_AND_ADD, 10, 0, 0);
  operate("fetch_and_add-wraps", IBV_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 2, 0);
  operate("fetch_and_add-ignores-swap", IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1, 99);
  probe("responder-completions", completions(s, c.responder.cq.get(), 0));
}

void shapes(const setting& s) {
  const auto operate = [&](const std::string& what, auto&& change) {
    connection c(s);
    store(c.responder.memory, 64, 7);
    request r(1, IBV_WR_ATOMIC_FETCH_AND_ADD, {c.requester.memory.piece(8, 8)});
    r.atomic(c.responder.memory.address(64), c.responder.memory->rkey, 1, 0);
    change(r, c);
    const int code = r.post(c.requester.qp.get());
    probe(what, code != 0 ? code_name(code)
                          : completions(s, c.requester.cq.get(), 1) + ", there " +
                                hex(load(c.responder.memory, 64)));
  };
  operate("local-unaligned",
          [](request& r, connection& c) { r.pieces = {c.requester.memory.piece(9, 8)}; });
  operate("two-pieces", [](request& r, connection& c) {
    r.pieces = {c.requester.memory.piece(8, 4), c.requester.memory.piece(12, 4)};
  });
  operate("no-piece", [](request& r, connection&) { r.pieces.clear(); });
  operate("inline", [](request& r, connection&) { r.flags(IBV_SEND_INLINE); });
  operate("inline-cmp_and_swp", [](request& r, connection&) {
    r.wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    r.wr.wr.atomic.compare_add = 7;
    r.wr.wr.atomic.swap = 8;
    r.flags(IBV_SEND_INLINE);
  });
  operate("unknown-lkey", [](request& r, connection& c) {
    r.pieces = {{c.requester.memory.address(8), 8, 1}};
  });
  operate("at-the-end-of-the-mr", [](request& r, connection& c) {
    r.atomic(c.responder.memory.address((1 << 16) - 8), c.responder.memory->rkey, 1, 0);
  });
}

/// More at a time than max_dest_rd_atomic: the requester's own depth limits them.
void depth(const setting& s) {
  for (const int reads : {1, 4}) {
    connection_options options;
    options.read_depth = static_cast<std::uint8_t>(reads);
    connection c(s, options);
    store(c.responder.memory, 0, 0);
    for (std::uint64_t id = 1; id <= 8; ++id)
      request(id, IBV_WR_ATOMIC_FETCH_AND_ADD, {c.requester.memory.piece(id * 8, 8)})
          .atomic(c.responder.memory.address(), c.responder.memory->rkey, 1, 0)
          .post(c.requester.qp.get());
    const std::string told = completions(s, c.requester.cq.get(), 8);
    probe("eight-at-depth-" + std::to_string(reads),
          told + ", there " + hex(load(c.responder.memory, 0)));
  }
}

}  // namespace

void probe_atomic(const setting& s) {
  values(s);
  shapes(s);
  depth(s);
}

}  // namespace conformance
