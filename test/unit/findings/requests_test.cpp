// Findings about work requests and the memory that they name.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "machine.hpp"

namespace ibvxx::findings_requests_test {

using test::finding_kind;
using test::machine;

namespace {

[[nodiscard]] std::uint64_t at(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

/// Polls until nothing is left.
void drain(ibv_cq* cq) {
  ibv_wc wc;
  while (::ibv_poll_cq(cq, 1, &wc) == 1) {
  }
}

}  // namespace

TEST_CASE_METHOD(machine, "a request is posted in a state that refuses it") {
  ibv_qp_init_attr attributes = queue_pair();
  // finding: wrong state
  ibv_qp* fresh = ::ibv_create_qp(pd, &attributes);  // and never connected
  ::ibv_post_send(fresh, &write, &bad_send);
  // end
  CHECK(::ibv_destroy_qp(fresh) == 0);
  check(finding_kind::wrong_state,
        {"ibv_post_send (call ", "QP#3 of sim0 in state RESET, which takes no sends before RTS"});
}

TEST_CASE_METHOD(machine, "wrong posts are findings that name state, queue and device") {
  ibv_qp_init_attr attributes = queue_pair();
  ibv_qp* fresh = ::ibv_create_qp(pd, &attributes);
  s.expect(finding_kind::wrong_state, "in state RESET, which takes no receives before INIT");
  CHECK(::ibv_post_recv(fresh, &receive, &bad_receive) == EINVAL);
  CHECK(::ibv_destroy_qp(fresh) == 0);
  ibv_srq_init_attr shared_attributes{nullptr, {4, 1, 0}};
  ibv_srq* srq = ::ibv_create_srq(pd, &shared_attributes);
  attributes.srq = srq;
  ibv_qp* sharing = ::ibv_create_qp(pd, &attributes);
  s.expect(finding_kind::wrong_state,
           "has no receive queue of its own: its receives are those of "
           "SRQ#1 of sim0");
  CHECK(::ibv_post_recv(sharing, &receive, &bad_receive) == EINVAL);
  CHECK(::ibv_destroy_qp(sharing) == 0);
  CHECK(::ibv_destroy_srq(srq) == 0);
  check_clean();
}

TEST_CASE("a receive posted in ERR stays on Soft-RoCE; hardware flushes it") {
  shim::session s({}, {.strict = true});
  {
    test::loopback pair;
    ibv_qp_attr wanted{};
    wanted.qp_state = IBV_QPS_ERR;
    CHECK(modify_qp(pair.a, wanted, IBV_QP_STATE));
    ibv_recv_wr receive{1, nullptr, nullptr, 0};
    s.expect(finding_kind::wrong_state, "where this device does not complete receives");
    CHECK(post_recv(pair.a, &receive));
  }
  CHECK(s.finish().empty());
}

TEST_CASE_METHOD(machine, "the drain of a broken queue pair posts in ERR, which is right") {
  // no finding: wrong state
  ibv_qp_attr wanted{};
  wanted.qp_state = IBV_QPS_ERR;
  CHECK(::ibv_modify_qp(qp, &wanted, IBV_QP_STATE) == 0);
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  check_clean();
}

TEST_CASE_METHOD(machine, "a request names memory by a key that is none") {
  // finding: wrong memory
  piece.lkey = mr->lkey + 1;
  ::ibv_post_send(qp, &write, &bad_send);
  // end
  check(finding_kind::wrong_memory,
        {"ibv_post_send (call ", "QP#1 of sim0: SGE 0 of the request with wr_id 9 names lkey 0x",
         "which belongs to no region"});
}

TEST_CASE_METHOD(machine,
                 "the finding says what is wrong with memory: deregistered, of another domain, out "
                 "of range, read-only") {
  ibv_pd* other = ::ibv_alloc_pd(context);
  const auto lkey_of = [](ibv_mr* region) { return region->lkey; };
  ibv_mr* gone = ibv_reg_mr(pd, memory, 64, IBV_ACCESS_LOCAL_WRITE);
  ibv_mr* elsewhere = ibv_reg_mr(other, memory, 64, IBV_ACCESS_LOCAL_WRITE);
  ibv_mr* read_only = ibv_reg_mr(pd, memory, 64, 0);
  piece.lkey = lkey_of(gone);
  CHECK(::ibv_dereg_mr(gone) == 0);
  s.expect(finding_kind::wrong_memory, "which was MR#2 of sim0's, destroyed by call ");
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  piece.lkey = lkey_of(elsewhere);
  s.expect(finding_kind::wrong_memory, "names MR#3 of sim0, which is in another protection domain");
  s.expect(finding_kind::buffer_reused);
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  piece.lkey = lkey_of(read_only);
  s.expect(finding_kind::wrong_memory, "MR#4 of sim0 has no IBV_ACCESS_LOCAL_WRITE");
  s.expect(finding_kind::buffer_reused);
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  piece = {at(memory) + 250, 16, mr->lkey};
  s.expect(finding_kind::wrong_memory, "which are not all in MR#1 of sim0's [0x");
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  // A read scatters into local memory.
  piece = {at(memory), 16, lkey_of(read_only)};
  write.opcode = IBV_WR_RDMA_READ;
  s.expect(finding_kind::wrong_memory, "is to be written");
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  s.tolerate(finding_kind::memory_in_use);  // by the receives that were flushed, or are to be
  CHECK(::ibv_dereg_mr(elsewhere) == 0);
  CHECK(::ibv_dereg_mr(read_only) == 0);
  CHECK(::ibv_dealloc_pd(other) == 0);
  check_clean();
}

TEST_CASE_METHOD(machine, "memory is right: registered, inside, with the access that is needed") {
  // no finding: wrong memory
  ibv_mr* read_only = ibv_reg_mr(pd, memory, 64, 0);
  piece.lkey = read_only->lkey;
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  piece = {at(memory) + 240, 16, mr->lkey};  // to the last byte
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  piece = {0, 0, 0};  // no byte at all
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  CHECK(::ibv_dereg_mr(read_only) == 0);
  check_clean();
}

TEST_CASE("what the device answers with an error is a finding in strict sessions only") {
  machine m(shim::session_options{});
  m.piece.lkey = m.mr->lkey + 1;
  CHECK(::ibv_post_recv(m.qp, &m.receive, &m.bad_receive) == 0);
  CHECK(::ibv_post_recv(m.qp, &m.receive, &m.bad_receive) == 0);
  CHECK(::ibv_post_send(m.qp, &m.write, &m.bad_send) == 0);
  ibv_wc wc;
  CHECK(::ibv_poll_cq(m.cq, 1, &wc) == 1);
  CHECK(wc.status == IBV_WC_LOC_PROT_ERR);
  m.check_clean();
}

TEST_CASE_METHOD(machine, "a completion is lost because its queue is too small") {
  // finding: undersized CQ
  ::ibv_resize_cq(cq, 1);
  for (int i = 0; i < 2; ++i) ::ibv_post_send(qp, &write, &bad_send);  // and no poll
  // end
  check(finding_kind::undersized_cq,
        {"CQ#1 of sim0, made by ibv_create_cq", "with 1 entries, was full when call ",
         "the request with wr_id 9", "(QP#1 of sim0, QP#2 of sim0) can have 62 outstanding"});
}

TEST_CASE_METHOD(machine, "a small queue is right where the program polls in time") {
  // no finding: undersized CQ
  CHECK(::ibv_resize_cq(cq, 1) == 0);
  for (int i = 0; i < 4; ++i) {
    CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
    drain(cq);
  }
  check_clean();
}

TEST_CASE_METHOD(machine, "a region is deregistered while a receive names it") {
  // finding: memory in use
  ibv_mr* other = ibv_reg_mr(pd, memory, 64, IBV_ACCESS_LOCAL_WRITE);
  piece.lkey = other->lkey;
  ::ibv_post_recv(qp, &receive, &bad_receive);
  ::ibv_dereg_mr(other);
  // end
  check(finding_kind::memory_in_use,
        {"ibv_dereg_mr (call ", "MR#2 of sim0, made by ibv_reg_mr (call ",
         "while 1 posted receive(s) of QP#1 of sim0 (the first with wr_id 7) name it"});
}

TEST_CASE_METHOD(machine, "a region is deregistered once its requests have completed") {
  // no finding: memory in use
  ibv_mr* other = ibv_reg_mr(pd, memory, 64, IBV_ACCESS_LOCAL_WRITE);
  piece.lkey = other->lkey;
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  ibv_qp_attr wanted{};
  wanted.qp_state = IBV_QPS_ERR;
  CHECK(::ibv_modify_qp(qp, &wanted, IBV_QP_STATE) == 0);
  CHECK(::ibv_dereg_mr(other) == 0);
  check_clean();
}

TEST_CASE_METHOD(machine, "memory is freed while a queued send names it") {
  auto buffer = std::make_unique<std::byte[]>(64);
  ibv_mr* other = ibv_reg_mr(pd, buffer.get(), 64, IBV_ACCESS_LOCAL_WRITE);
  piece = {at(buffer.get()) + 8, 16, other->lkey};
  write.opcode = IBV_WR_SEND;  // nothing is posted for it: it waits
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  s.expect(finding_kind::memory_in_use, "operator delete of bytes [0x");
  buffer.reset();
  // The device still has the pages: what it sends now is not the program's memory any more.
  s.expect(finding_kind::memory_in_use, "carried data of MR#2 of sim0");
  receive.sg_list = &piece;
  piece = {at(memory), 16, mr->lkey};
  std::memset(memory, 0x55, 16);
  CHECK(::ibv_post_recv(peer, &receive, &bad_receive) == 0);
  CHECK(memory[0] == std::byte{0});
  CHECK(::ibv_dereg_mr(other) == 0);
  check_clean();
}

TEST_CASE_METHOD(machine, "registered memory is unmapped, and data arrives for it") {
  const std::size_t length = std::size_t{4} << 12;
  auto* mapping = static_cast<std::byte*>(
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ibv_mr* other = ibv_reg_mr(pd, mapping, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  piece = {at(mapping), 16, other->lkey};
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  s.expect(finding_kind::memory_in_use, "munmap of bytes [0x");
  CHECK(::munmap(mapping, length / 2) == 0);
  piece = {at(memory), 16, mr->lkey};
  write.wr.rdma = {at(mapping) + length / 2, other->rkey};  // what is left of it
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  CHECK(mapping[length / 2] == memory[0]);
  write.wr.rdma.remote_addr = at(mapping);
  s.expect(finding_kind::memory_in_use, "to or from bytes that the program has freed or unmapped");
  for (int i = 0; i < 2; ++i) CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  s.expect(finding_kind::memory_in_use, "ibv_dereg_mr (call ");
  CHECK(::ibv_dereg_mr(other) == 0);
  CHECK(::munmap(mapping + length / 2, length / 2) == 0);
  check_clean();
}

TEST_CASE_METHOD(
    machine,
    "a large buffer is unmapped by a system call that is not intercepted, as free() does") {
  const std::size_t length = std::size_t{1} << 20;
  auto* mapping = static_cast<std::byte*>(
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ibv_mr* other = ibv_reg_mr(pd, mapping, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  write.wr.rdma = {at(mapping) + length / 2 - 8, other->rkey};
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  CHECK(mapping[length / 2] == memory[8]);
  CHECK(::syscall(SYS_munmap, mapping + length / 2, length / 2) == 0);
  s.expect(finding_kind::memory_in_use, "to or from bytes that the program has freed or unmapped");
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);  // half of it is there
  write.wr.rdma.remote_addr = at(mapping);
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  CHECK(mapping[0] == memory[0]);
  ibv_wc done[4];
  CHECK(::ibv_poll_cq(cq, 4, done) == 3);
  CHECK(done[1].status == IBV_WC_SUCCESS);  // the device has its pages still
  CHECK(::ibv_dereg_mr(other) == 0);
  CHECK(::munmap(mapping, length / 2) == 0);
  check_clean();
}

TEST_CASE_METHOD(machine, "a receive is posted into a buffer that another posted receive uses") {
  // finding: buffer reused
  ::ibv_post_recv(qp, &receive, &bad_receive);
  ::ibv_post_recv(qp, &receive, &bad_receive);
  // end
  check(finding_kind::buffer_reused,
        {"ibv_post_recv (call ", "the receive with wr_id 7 has bytes that the one with wr_id 7",
         "still posted to QP#1 of sim0"});
}

TEST_CASE_METHOD(
    machine,
    "a buffer is posted again after its completion, and two halves of one do not overlap") {
  // no finding: buffer reused
  CHECK(::ibv_post_recv(peer, &receive, &bad_receive) == 0);
  write.opcode = IBV_WR_SEND;
  CHECK(::ibv_post_send(qp, &write, &bad_send) == 0);
  CHECK(::ibv_post_recv(peer, &receive, &bad_receive) == 0);
  piece.addr += piece.length;
  CHECK(::ibv_post_recv(qp, &receive, &bad_receive) == 0);
  check_clean();
}

}  // namespace ibvxx::findings_requests_test
