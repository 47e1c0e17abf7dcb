// Step 2: the calls are ibvxx's. An error names the verb, the device and the arguments, and a
// transport exists either complete or not at all.
#include <cstdio>
#include <ibvxx/ibvxx.hpp>
#include <span>
#include <utility>
#include <vector>

namespace {

struct transport {
  ibvxx::unique_context context;
  ibvxx::unique_pd pd;
  ibvxx::unique_cq cq;
  ibvxx::unique_mr mr;
};

ibvxx::result<transport> open_transport(std::vector<char>& memory) {
  auto devices = ibvxx::get_device_list();
  if (!devices) return ibvxx::failure(devices.error());
  if (devices->empty()) return ibvxx::failure({ibvxx::verb::get_device_list, ENODEV});
  auto context = ibvxx::open_device((*devices)[0]);
  if (!context) return ibvxx::failure(context.error());
  auto pd = ibvxx::alloc_pd(*context);
  if (!pd) return ibvxx::failure(pd.error());
  auto cq = ibvxx::create_cq(*context, 256);
  if (!cq) return ibvxx::failure(cq.error());
  auto mr = ibvxx::reg_mr(*pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE);
  if (!mr) return ibvxx::failure(mr.error());
  return transport{std::move(*context), std::move(*pd), std::move(*cq), std::move(*mr)};
}

}  // namespace

int main() {
  std::vector<char> memory(4096);
  const auto t = open_transport(memory);
  if (!t) {
    std::fprintf(stderr, "%s\n", t.error().message().c_str());
    return 1;
  }
  std::printf("%s: %zu bytes registered, a CQ of %d entries\n",
              ibv_get_device_name(t->context->device), t->mr->length, t->cq->cqe);
}
