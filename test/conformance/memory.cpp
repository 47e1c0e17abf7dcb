// Memory regions: lengths, addresses, access flags, and memory windows.
#include <sys/mman.h>

#include "connection.hpp"
#include "groups.hpp"

namespace conformance {
namespace {

constexpr std::size_t page = 4096;

void* map(std::size_t size, int protection) {
  void* const mapped = ::mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(mapped != MAP_FAILED, "mmap");
  return mapped;
}

void lengths(const setting& s, unsigned char* memory, std::size_t size) {
  const auto reg = [&](const std::string& what, void* address, std::size_t length,
                       unsigned access = IBV_ACCESS_LOCAL_WRITE) {
    own(probe_pointer("reg_mr-" + what, [&] { return ibv_reg_mr(s.pd, address, length, access); }));
  };
  reg("whole", memory, size);
  reg("1-byte", memory, 1);
  reg("unaligned", memory + 7, 13);
  reg("across-pages", memory + page - 1, 2);
  reg("0-bytes", memory, 0);
  reg("NULL", nullptr, page);
  reg("NULL-0-bytes", nullptr, 0);
  reg("wrapping", memory, SIZE_MAX);
  reg("wrapping-by-one", memory, SIZE_MAX - reinterpret_cast<std::uintptr_t>(memory) + 1);
  reg("last-address", reinterpret_cast<void*>(UINTPTR_MAX), 1);
  reg("kernel-half", reinterpret_cast<void*>(0xffff888000000000), page);
  reg("not-mapped", reinterpret_cast<void*>(0x10000), page);
  void* const more = map(4 * page, PROT_READ | PROT_WRITE);
  ::munmap(static_cast<unsigned char*>(more) + 2 * page, 2 * page);
  reg("half-mapped", more, 4 * page);
  ::munmap(more, 2 * page);
  void* const constant = map(page, PROT_READ);
  reg("read-only-page-local-write", constant, page);
  reg("read-only-page-no-access", constant, page, 0);
  reg("read-only-page-remote-read", constant, page, IBV_ACCESS_REMOTE_READ);
  ::munmap(constant, page);
  void* const closed = map(page, PROT_NONE);
  reg("no-access-page", closed, page);
  reg("no-access-page-no-access", closed, page, 0);
  ::munmap(closed, page);
}

void accesses(const setting& s, unsigned char* memory) {
  const auto reg = [&](const std::string& what, unsigned access) {
    own(probe_pointer("access-" + what, [&] { return ibv_reg_mr(s.pd, memory, page, access); }));
  };
  // Each set of the four flags that every device has.
  for (unsigned set = 0; set < 16; ++set) {
    std::string what;
    if ((set & IBV_ACCESS_LOCAL_WRITE) != 0) what += "+local_write";
    if ((set & IBV_ACCESS_REMOTE_WRITE) != 0) what += "+remote_write";
    if ((set & IBV_ACCESS_REMOTE_READ) != 0) what += "+remote_read";
    if ((set & IBV_ACCESS_REMOTE_ATOMIC) != 0) what += "+remote_atomic";
    reg(what.empty() ? "none" : what.substr(1), set);
  }
  const struct {
    const char* name;
    unsigned flag;
  } others[] = {{"mw_bind", IBV_ACCESS_MW_BIND},
                {"zero_based", IBV_ACCESS_ZERO_BASED},
                {"on_demand", IBV_ACCESS_ON_DEMAND},
                {"hugetlb", IBV_ACCESS_HUGETLB},
                {"bit-8", 1U << 8},
                {"bit-9", 1U << 9},
                {"bit-10", 1U << 10},
                {"bit-19", 1U << 19},
                {"relaxed_ordering", IBV_ACCESS_RELAXED_ORDERING},
                {"optional-bit-29", 1U << 29},
                {"bit-30", 1U << 30},
                {"bit-31", 1U << 31}};
  for (const auto& other : others) {
    reg(other.name, other.flag);
    reg(std::string(other.name) + "+local_write", other.flag | IBV_ACCESS_LOCAL_WRITE);
  }
}

void regions(const setting& s, unsigned char* memory) {
  constexpr unsigned access = every_access;
  const auto first = own(ibv_reg_mr(s.pd, memory, page, access));
  const auto second = own(
      probe_pointer("same-range-twice", [&] { return ibv_reg_mr(s.pd, memory, page, access); }));
  probe("same-range-twice-keys", first->lkey != second->lkey ? "differ" : "same");
  probe("mr-fields", std::string(first->addr == memory ? "addr " : "other-addr ") +
                         (first->length == page ? "length " : "other-length ") +
                         (first->pd == s.pd ? "pd " : "other-pd ") +
                         (first->context == s.context ? "context" : "other-context"));
  probe("remote-access-keys", first->lkey == first->rkey ? "lkey is rkey" : "lkey is not rkey");
  const auto local = own(ibv_reg_mr(s.pd, memory, page, IBV_ACCESS_LOCAL_WRITE));
  probe("local-access-rkey", local->rkey == 0             ? "zero"
                             : local->lkey == local->rkey ? "lkey is rkey"
                                                          : "lkey is not rkey");
  const auto moved = own(probe_pointer(
      "reg_mr_iova", [&] { return ibv_reg_mr_iova(s.pd, memory, page, 0x7000, access); }));
  if (moved) probe("reg_mr_iova-addr", moved->addr == memory ? "the memory's" : "another");
  own(probe_pointer("reg_mr_iova-other-page-offset",
                    [&] { return ibv_reg_mr_iova(s.pd, memory, page, 0x7001, access); }));
  own(probe_pointer("reg_dmabuf_mr-bad-fd", [&] {
    return ibv_reg_dmabuf_mr(s.pd, 0, page, 0, -1, static_cast<int>(access));
  }));
  errno = untouched;
  ibv_mr* const once = ibv_reg_mr(s.pd, memory, page, access);
  probe_code("dereg_mr", [&] { return ibv_dereg_mr(once); });
  // Case 39.
  probe_code("fork_init-after-reg_mr", [] { return ibv_fork_init(); });
}

}  // namespace

void probe_memory(const setting& s) {
  const std::size_t size = 4 * page;
  auto* const memory = static_cast<unsigned char*>(map(size, PROT_READ | PROT_WRITE));
  lengths(s, memory, size);
  accesses(s, memory);
  regions(s, memory);
  ::munmap(memory, size);
}

}  // namespace conformance
