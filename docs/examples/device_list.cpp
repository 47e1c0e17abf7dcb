// What RDMA devices are there, what state their ports are in, and which GID a context would choose.
//
// usage: device_list [DEVICE]...
#include <fmt/format.h>

#include <algorithm>
#include <ibvxx/format.hpp>
#include <ibvxx/ibvxx.hpp>
#include <span>
#include <string_view>
#include <vector>

using namespace ibvxx;

namespace {

result<void> show_port(const unique_context& context, int number) {
  auto port = query_port(context, number);
  if (!port) return failure(port.error());
  fmt::print("  port {}: {}, MTU {}, {}\n", number, ibv_port_state_str(port->state),
             mtu_bytes(port->active_mtu),
             port->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand");

  std::vector<ibv_gid_entry> entries;
  for (int index = 0; index < port->gid_tbl_len; ++index) {
    auto entry = query_gid_ex(context, number, index);
    if (entry) entries.push_back(*entry);
    // ENODATA is an empty slot, of which most tables are full.
    if (!entry && entry.error().code() != ENODATA) return failure(entry.error());
  }
  auto ranked = rank_gids(entries, number, port->link_layer == IBV_LINK_LAYER_INFINIBAND);
  if (!ranked) return failure(ranked.error());
  for (const gid_candidate& candidate : *ranked)
    fmt::print("    GID {:>3}: {}, {}\n", candidate.entry.gid_index, candidate.entry.gid,
               candidate.reason.c_str());
  return {};
}

result<void> show_device(ibv_device* device) {
  auto context = open_device(device);
  if (!context) return failure(context.error());
  auto attributes = query_device(*context);
  if (!attributes) return failure(attributes.error());
  fmt::print("{}: {} port(s), up to {} QPs, {} CQs of {} entries, {} MRs\n", device->name,
             attributes->phys_port_cnt, attributes->max_qp, attributes->max_cq, attributes->max_cqe,
             attributes->max_mr);
  for (int port = 1; port <= attributes->phys_port_cnt; ++port)
    if (auto shown = show_port(*context, port); !shown) return shown;
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  auto devices = get_device_list();
  if (!devices) {
    fmt::print(stderr, "{}\n", devices.error());
    return 1;
  }
  const std::span<char* const> names(arguments + 1, static_cast<std::size_t>(count - 1));
  for (const std::string_view name : names) {
    if (devices->find(name)) continue;
    fmt::print(stderr, "there is no device {}\n", name);
    return 1;
  }
  fmt::print("{} device(s)\n", devices->size());
  int failed = 0;
  for (ibv_device* device : *devices) {
    const std::string_view name = device->name;
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    // One that cannot be opened is no reason not to look at the others.
    if (auto shown = show_device(device); !shown) {
      fmt::print(stderr, "{}\n", shown.error());
      failed = 1;
    }
  }
  return failed;
}
