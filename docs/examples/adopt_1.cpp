// Step 1: the calls stay, their results get owners. The labels for undoing and the closing function
// are no longer needed: members are destroyed in the reverse order of their declaration.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ibvxx/completion.hpp>
#include <ibvxx/device.hpp>
#include <ibvxx/domain.hpp>
#include <ibvxx/memory.hpp>
#include <vector>

namespace {

struct transport {
  ibvxx::unique_context context;
  ibvxx::unique_pd pd;
  ibvxx::unique_cq cq;
  ibvxx::unique_mr mr;
};

int open_transport(transport& t, std::vector<char>& memory) {
  ibv_device** list = ibv_get_device_list(nullptr);
  if (!list) return errno;
  int failed = ENODEV;
  if (list[0]) {
    t.context = ibvxx::unique_context(ibv_open_device(list[0]));
    failed = errno;
  }
  ibv_free_device_list(list);
  if (!t.context) return failed;

  t.pd = ibvxx::unique_pd(ibv_alloc_pd(t.context.get()));
  if (!t.pd) return errno;
  t.cq = ibvxx::unique_cq(ibv_create_cq(t.context.get(), 256, nullptr, nullptr, 0));
  if (!t.cq) return errno;
  t.mr = ibvxx::unique_mr(
      ibv_reg_mr(t.pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  if (!t.mr) return errno;
  return 0;
}

}  // namespace

int main() {
  std::vector<char> memory(4096);
  transport t;
  if (const int failed = open_transport(t, memory); failed != 0) {
    std::fprintf(stderr, "%s\n", std::strerror(failed));
    return 1;
  }
  std::printf("%s: %zu bytes registered, a CQ of %d entries\n",
              ibv_get_device_name(t.context->device), t.mr->length, t.cq->cqe);
}
