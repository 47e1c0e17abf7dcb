// Lists the RDMA devices of this machine with their ports. For each DEVICE that is named it also
// shows the limits, and every GID with the reason why a context would choose it or not.
//
// usage: device_list [DEVICE]...
#include <fmt/format.h>

#include <ibvxx/format.hpp>
#include <ibvxx/ibvxx.hpp>
#include <span>
#include <vector>

using namespace ibvxx;

namespace {

/// One line for each device and port. A device that cannot be opened is listed with its error.
result<void> list_devices() {
  auto devices = describe_devices();
  if (!devices) return failure(devices.error());
  fmt::print("{} device(s)\n", devices->size());
  for (const device_info& device : *devices) {
    fmt::print("{}\n", to_text(device).view());
    for (const port_info& port : device.ports) fmt::print("  {}\n", to_text(port).view());
  }
  return {};
}

result<void> show_gids(const unique_context& context, int number) {
  auto port = query_port(context, number);
  if (!port) return failure(port.error());
  std::vector<ibv_gid_entry> entries;
  for (int index = 0; index < port->gid_tbl_len; ++index) {
    auto entry = query_gid_ex(context, number, index);
    if (entry) entries.push_back(*entry);
    // ENODATA is an empty slot; most slots of most tables are empty.
    if (!entry && entry.error().code() != ENODATA) return failure(entry.error());
  }
  auto ranked = rank_gids(entries, number, port->link_layer == IBV_LINK_LAYER_INFINIBAND);
  if (!ranked) return failure(ranked.error());
  fmt::print("  GIDs of port {}\n", number);
  for (const gid_candidate& candidate : *ranked)
    fmt::print("    {:>3}: {}, {}, {}\n", candidate.entry.gid_index, candidate.entry.gid,
               gid_type_name(candidate.entry.gid_type), candidate.reason.c_str());
  return {};
}

result<void> show_device(ibv_device* device) {
  auto context = open_device(device);
  if (!context) return failure(context.error());
  auto limits = query_device(*context);
  if (!limits) return failure(limits.error());
  fmt::print("{}: {} port(s), up to {} QPs, {} CQs of {} entries, {} MRs\n", device->name,
             limits->phys_port_cnt, limits->max_qp, limits->max_cq, limits->max_cqe,
             limits->max_mr);
  for (int port = 1; port <= limits->phys_port_cnt; ++port)
    if (auto shown = show_gids(*context, port); !shown) return shown;
  return {};
}

result<void> show_devices(std::span<char* const> names) {
  auto devices = get_device_list();
  if (!devices) return failure(devices.error());
  for (const char* name : names) {
    ibv_device* const device = devices->find(name);
    if (!device) return failure(error(verb::get_device_list, ENODEV).on(name));
    if (auto shown = show_device(device); !shown) return shown;
  }
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  auto outcome = list_devices();
  if (outcome) outcome = show_devices({arguments + 1, static_cast<std::size_t>(count - 1)});
  if (outcome) return 0;
  fmt::print(stderr, "{}\n", outcome.error());
  return 1;
}
