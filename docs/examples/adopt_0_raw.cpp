// Before: a program on raw verbs. Each failure has to undo the steps before it.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

struct transport {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
};

int open_transport(transport& t, std::vector<char>& memory) {
  ibv_device** list = ibv_get_device_list(nullptr);
  if (!list) return errno;
  int failed = ENODEV;
  if (list[0]) {
    t.context = ibv_open_device(list[0]);
    failed = errno;
  }
  ibv_free_device_list(list);
  if (!t.context) return failed;

  t.pd = ibv_alloc_pd(t.context);
  if (!t.pd) {
    failed = errno;
    goto close_device;
  }
  t.cq = ibv_create_cq(t.context, 256, nullptr, nullptr, 0);
  if (!t.cq) {
    failed = errno;
    goto dealloc_pd;
  }
  t.mr = ibv_reg_mr(t.pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
  if (!t.mr) {
    failed = errno;
    goto destroy_cq;
  }
  return 0;

destroy_cq:
  ibv_destroy_cq(t.cq);
dealloc_pd:
  ibv_dealloc_pd(t.pd);
close_device:
  ibv_close_device(t.context);
  return failed;
}

void close_transport(transport& t) {
  ibv_dereg_mr(t.mr);
  ibv_destroy_cq(t.cq);
  ibv_dealloc_pd(t.pd);
  ibv_close_device(t.context);
}

}  // namespace

int main() {
  std::vector<char> memory(4096);
  transport t;
  if (const int failed = open_transport(t, memory); failed != 0) {
    std::fprintf(stderr, "%s\n", std::strerror(failed));
    return 1;
  }
  // clang-tidy is right: a verb that fails with errno 0 looks like a success here. ibvxx reports
  // it.
  std::printf("%s: %zu bytes registered, a CQ of %d entries\n",
              // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
              ibv_get_device_name(t.context->device), t.mr->length, t.cq->cqe);
  close_transport(t);
}
