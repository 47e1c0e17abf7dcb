// Step 3: device, domain, channels and queues are one context. It finds the device with an active
// port, follows its events, and releases everything in order.
#include <cstdio>
#include <ibvxx/ibvxx.hpp>
#include <span>
#include <vector>

namespace {

ibvxx::result<void> run() {
  std::vector<char> memory(4096);
  ibvxx::rdma_context context({.comp_channels = 0, .cqs = 1, .cqe = 256, .notification_cq = false});
  if (auto enabled = context.enable(); !enabled) return enabled;
  auto mr = context.register_memory(std::span(memory), IBV_ACCESS_LOCAL_WRITE);
  if (!mr) return ibvxx::failure(mr.error());
  std::printf("%s: %zu bytes registered, a CQ of %d entries\n",
              ibv_get_device_name(context.device()->device), (*mr)->length, context.cq(0)->cqe);
  return context.reset();
}

}  // namespace

int main() {
  if (auto done = run(); !done) {
    std::fprintf(stderr, "%s\n", done.error().message().c_str());
    return 1;
  }
}
