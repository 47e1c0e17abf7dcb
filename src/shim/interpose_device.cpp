// Devices: the list, opening and closing, queries.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine.hpp"
#include "interpose.hpp"
#include "real.hpp"
#include "sim_device.hpp"
#include "sim_objects.hpp"

#undef ibv_query_port

namespace ibvxx::shim {
namespace {

/// Asks a port; `size` is how much of ibv_port_attr the caller has room for.
int answer_port(call& c, ibv_context* context, std::uint8_t number, ibv_port_attr* out,
                std::size_t size) noexcept {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "port_attr")) return c.refuse_code();
  std::memset(out, 0, std::min(size, sizeof *out));  // before anything is asked (measured)
  const port_description* port = find_port(*owner->device, number);
  if (!port) return call::from_kernel(EINVAL);
  ibv_port_attr answer{};
  answer.state = port->state;
  answer.max_mtu = port->max_mtu;
  answer.active_mtu = port->active_mtu;
  answer.gid_tbl_len = port->gid_table_size;
  answer.port_cap_flags = IBV_PORT_CM_SUP;
  answer.max_msg_sz = 0x800000;
  answer.pkey_tbl_len = 1;
  answer.lid = port->lid;
  answer.sm_lid = 0;
  answer.active_width = 1;
  answer.active_speed = 1;
  answer.max_vl_num = 1;
  answer.phys_state = port->state == IBV_PORT_ACTIVE ? 5 : 3;  // LinkUp, Disabled (IBA 14.2.5.6)
  answer.link_layer = port->link_layer;
  // RoCE has no packets without a GRH (measured).
  if (port->link_layer == IBV_LINK_LAYER_ETHERNET) answer.flags = IBV_QPF_GRH_REQUIRED;
  std::memcpy(out, &answer, std::min(size, sizeof answer));
  return 0;
}

int query_port(ibv_context* context, std::uint8_t number, ibv_port_attr* out, std::size_t size) {
  call c(verb::query_port, context);
  if (c.forwarded()) return forward(c, &verbs_context::query_port, context, number, out, size);
  return answer_port(c, context, number, out, size);
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* out, std::size_t size) {
  call c(verb::query_device_ex, context);
  if (c.forwarded()) return forward(c, &verbs_context::query_device_ex, context, input, out, size);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "attr")) return c.refuse_code();
  ibv_device_attr_ex answer{};
  const device_features& offers = owner->offers();
  answer.orig_attr = owner->limits();
  answer.device_cap_flags_ex = owner->limits().device_cap_flags;
  answer.phys_port_cnt_ex = owner->limits().phys_port_cnt;
  answer.max_dm_size = owner->device->described.max_dm_size;
  if (offers.work_queues) {
    answer.max_wq_type_rq = 1U << 20;
    answer.rss_caps.max_rwq_indirection_tables = 1U << 16;
    answer.rss_caps.max_rwq_indirection_table_size = 1U << 11;
  }
  if (offers.cq_moderation) answer.cq_mod_caps = {UINT16_MAX, 4095};
  if (offers.tag_matching) answer.tm_caps = {64, 127, IBV_TM_CAP_RC, 1U << 10, 1};
  if (offers.on_demand_paging) answer.odp_caps.general_caps = IBV_ODP_SUPPORT;
  std::memset(out, 0, size);
  std::memcpy(out, &answer, std::min(size, sizeof answer));
  return 0;
}

// Counts calls instead of nanoseconds, so that the same program gets the same answers.
int query_rt_values(ibv_context* context, ibv_values_ex* values) {
  call c(verb::query_rt_values_ex, context);
  if (c.forwarded()) return forward(c, &verbs_context::query_rt_values, context, values);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(values, "values")) return c.refuse_code();
  if (!owner->offers().real_time_values) return EOPNOTSUPP;
  if ((values->comp_mask & ~std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) return EINVAL;
  if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0)
    values->raw_clock = {0, static_cast<long>(c.index() % 1'000'000'000)};
  return 0;
}

/// The device behind an entry of a list; null, with a finding, for a pointer that is none.
[[nodiscard]] std::shared_ptr<sim_device> find_device(call& c, const ibv_device* device,
                                                      const char* called) noexcept {
  for (const auto& candidate : c.state().devices)
    if (&candidate->verbs == device) return candidate;
  c.found(finding_kind::foreign_pointer, std::string(called) + " was given " +
                                             (device ? "a" : "a null") +
                                             " pointer that is no device of this session");
  return nullptr;
}

/// A device lives as long as a list that names it.
void find_freed_list(call& c, const std::string& device) {
  if (c.is_seen() && c.state().objects.live(object_kind::device_list) == 0)
    c.found(finding_kind::use_after_destroy, "ibv_open_device of " + device + " (call " +
                                                 std::to_string(c.index()) +
                                                 ") after the device list was freed");
}

/// A real context that was just opened.
[[nodiscard]] ibv_context* intercepted(const call& c, ibv_context* opened) {
  if (opened && c.is_seen()) intercept_operations(*opened);
  return opened;
}

/// The device whose command descriptor this is, or a duplicate of it.
[[nodiscard]] std::shared_ptr<sim_device> device_of(const call& c, int cmd_fd) noexcept {
  struct stat given {};
  if (::fstat(cmd_fd, &given) != 0) return nullptr;
  for (const record& object : c.state().objects.records()) {
    if (!object.live || object.kind != object_kind::context) continue;
    const auto* context = static_cast<const sim_context*>(object.storage.get());
    struct stat own {};
    if (::fstat(context->verbs.context.cmd_fd, &own) == 0 && own.st_ino == given.st_ino &&
        own.st_dev == given.st_dev)
      return context->device;
  }
  return nullptr;
}

}  // namespace

void sim_context::close_descriptors() noexcept {
  for (int& fd : descriptors)
    if (const int open = std::exchange(fd, -1); open != -1) real::close(open);
}

std::shared_ptr<sim_context> make_context(const std::shared_ptr<sim_device>& device, int cmd_fd) {
  auto made = std::make_shared<sim_context>();
  if ((made->descriptors[0] = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) == -1) return nullptr;
  // A file of its own, so that its duplicates are known again by the inode.
  if (cmd_fd == -1 && (cmd_fd = ::memfd_create("uverbs", MFD_CLOEXEC)) == -1) return nullptr;
  made->descriptors[1] = cmd_fd;
  made->device = device;
  verbs_context& verbs = made->verbs;
  verbs.sz = sizeof verbs;
  ibv_context& context = verbs.context;
  context.device = &device->verbs;
  context.async_fd = made->descriptors[0];
  context.cmd_fd = made->descriptors[1];
  context.num_comp_vectors = device->described.completion_vectors;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.mutex = PTHREAD_MUTEX_INITIALIZER;
  install_operations(verbs);
  return made;
}

void install_device_operations(verbs_context& context) noexcept {
  context.query_port = &query_port;
  context.query_device_ex = &query_device_ex;
  context.query_rt_values = &query_rt_values;
}

void install_operations(verbs_context& context) noexcept {
  install_device_operations(context);
  install_domain_operations(context);
  install_memory_operations(context);
  install_memory_window_operations(context);
  install_device_memory_operations(context);
  install_completion_operations(context);
  install_polling_operations(context);
  install_queue_pair_operations(context);
  install_posting_operations(context);
  install_receive_operations(context);
  install_work_queue_operations(context);
  install_flow_operations(context);
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_device** ibv_get_device_list(int* num_devices) {
  call c(verb::get_device_list, nullptr);
  if (c.forwarded()) return forward<ibv_device**>(c, "ibv_get_device_list", num_devices);
  if (c.failing()) return c.refuse_pointer();
  auto list = std::make_shared<sim_device_list>();
  for (const auto& device : c.state().devices)
    if (!device->lost) list->entries.push_back(&device->verbs);
  if (num_devices) *num_devices = static_cast<int>(list->entries.size());
  list->entries.push_back(nullptr);
  c.add(list, list->entries.data(), "", {});
  errno = 0;
  return list->entries.data();
}

void ibv_free_device_list(ibv_device** list) {
  call c(verb::free_device_list, list);
  if (c.forwarded()) return forward<void>(c, "ibv_free_device_list", list);
  if (c.ending<sim_device_list>(list)) static_cast<void>(c.destroy(list));
}

ibv_context* ibv_open_device(ibv_device* device) {
  call c(verb::open_device, device);
  if (c.forwarded()) {
    find_freed_list(c, device ? device->name : "?");
    return intercepted(c, forward<ibv_context*>(c, "ibv_open_device", device));
  }
  const auto found = find_device(c, device, "ibv_open_device");
  if (!found) return c.refuse_pointer();
  find_freed_list(c, found->described.name);
  if (c.failing()) return c.refuse_pointer();
  if (found->lost) return c.refuse_pointer(ENODEV);
  auto made = make_context(found);
  if (!made) return nullptr;
  c.add(made, &made->verbs.context, found->described.name, {});
  c.record_of(&made->verbs.context)->lost = &found->lost;
  return &made->verbs.context;
}

// On success the descriptor is the context's, and closing the device closes it (manual page).
ibv_context* ibv_import_device(int cmd_fd) {
  call c(verb::import_device, nullptr);
  if (c.forwarded()) return intercepted(c, forward<ibv_context*>(c, "ibv_import_device", cmd_fd));
  if (c.failing()) return c.refuse_pointer();
  const auto device = device_of(c, cmd_fd);
  if (!device) return c.refuse_pointer(cmd_fd < 0 ? EINVAL : ENODEV);  // measured
  if (!device->described.features.imports) return c.refuse_pointer(EOPNOTSUPP);
  auto made = make_context(device, cmd_fd);
  if (!made) return nullptr;
  c.add(made, &made->verbs.context, device->described.name, {}).lost = &device->lost;
  return &made->verbs.context;
}

int ibv_close_device(ibv_context* context) {
  call c(verb::close_device, context);
  if (c.forwarded()) return forward<int>(c, "ibv_close_device", context);
  auto* ending = c.ending<sim_context>(context);
  if (!ending) return c.refuse_minus_one();
  const int code = c.destroy(context);
  if (code == 0) ending->close_descriptors();
  return code;
}

const char* ibv_get_device_name(ibv_device* device) {
  call c(verb::none, call::part::uncounted);
  if (c.forwarded()) return device ? device->name : nullptr;
  return find_device(c, device, "ibv_get_device_name") ? device->name : nullptr;
}

int ibv_get_device_index(ibv_device* device) {
  if (!engine::simulates()) return call_real<int>("ibv_get_device_index", device);
  call c(verb::none, call::part::uncounted);
  if (c.forwarded() || !find_device(c, device, "ibv_get_device_index")) return -1;
  const auto& devices = c.state().devices;
  for (std::size_t index = 0; index < devices.size(); ++index)
    if (&devices[index]->verbs == device) return static_cast<int>(index);
  return -1;
}

__be64 ibv_get_device_guid(ibv_device* device) {
  if (!engine::simulates()) return call_real<__be64>("ibv_get_device_guid", device);
  call c(verb::none, call::part::uncounted);
  const auto found = c.forwarded() ? nullptr : find_device(c, device, "ibv_get_device_guid");
  return found ? found->described.limits.node_guid : 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  call c(verb::query_device, context);
  if (c.forwarded()) return forward<int>(c, "ibv_query_device", context, out);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "device_attr")) return c.refuse_code();
  *out = owner->device->described.limits;
  return 0;
}

// The symbol of this name fills the compatibility structure only, which ends before ibv_port_attr
// grew (48 bytes).
int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* out) {
  call c(verb::query_port, context);
  if (c.forwarded()) return forward<int>(c, "ibv_query_port", context, port, out);
  return answer_port(c, context, port, reinterpret_cast<ibv_port_attr*>(out), 48);
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* out) {
  call c(verb::query_gid, context);
  if (c.forwarded()) return forward<int>(c, "ibv_query_gid", context, port, index, out);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "gid")) return c.refuse_minus_one();
  const port_description* described = find_port(*owner->device, port);
  if (!described || index < 0 || index >= described->gid_table_size) return c.refuse_minus_one();
  const auto slot = static_cast<std::size_t>(index);
  *out = slot < described->gids.size() ? described->gids[slot].gid : ibv_gid{};
  return 0;
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                      ibv_gid_entry* out, std::uint32_t flags, std::size_t entry_size) {
  call c(verb::query_gid_ex, context);
  if (c.forwarded())
    return forward<int>(c, "_ibv_query_gid_ex", context, port, index, out, flags, entry_size);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "entry")) return c.refuse_code();
  const port_description* described = find_port(*owner->device, port);
  if (!described || flags != 0 || index >= static_cast<std::uint32_t>(described->gid_table_size))
    return call::from_kernel(EINVAL);
  if (!fill_gid_entry(*described, port, index, *out)) return call::from_kernel(ENODATA);
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t max_entries,
                             std::uint32_t flags, std::size_t entry_size) {
  call c(verb::query_gid_table, context);
  if (c.forwarded())
    return forward<ssize_t>(c, "_ibv_query_gid_table", context, entries, max_entries, flags,
                            entry_size);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return -c.refuse_code();
  if (flags != 0) return -call::from_kernel(EINVAL);
  // The kernel refuses to be asked with no room, whatever there is (UVERBS_METHOD_QUERY_GID_TABLE).
  if (max_entries == 0) return -call::from_kernel(EINVAL);
  if (!c.given(entries, "entries")) return -EINVAL;
  const auto& ports = owner->device->described.ports;
  std::size_t count = 0;
  for (std::uint32_t port = 1; port <= ports.size(); ++port) {
    for (std::uint32_t index = 0; index < ports[port - 1].gids.size(); ++index) {
      ibv_gid_entry entry{};
      if (!fill_gid_entry(ports[port - 1], port, index, entry)) continue;
      if (count == max_entries) return -call::from_kernel(EINVAL);
      entries[count++] = entry;
    }
  }
  return static_cast<ssize_t>(count);
}

/// Private to libibverbs, but exported, and used by librdmacm and others.
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type) {
  call c(verb::query_gid_ex, context);
  if (c.forwarded()) return forward<int>(c, "ibv_query_gid_type", context, port, index, type);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(type, "type")) return c.refuse_minus_one();
  const port_description* described = find_port(*owner->device, port);
  if (!described || index >= static_cast<unsigned>(described->gid_table_size))
    return c.refuse_minus_one();
  const bool v2 =
      index < described->gids.size() && described->gids[index].type == IBV_GID_TYPE_ROCE_V2;
  *type = v2 ? 1 : 0;  // IBV_GID_TYPE_SYSFS_ROCE_V2, ..._IB_ROCE_V1
  return 0;
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  call c(verb::get_pkey_index, context);
  if (c.forwarded()) return forward<int>(c, "ibv_get_pkey_index", context, port, pkey);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_minus_one();
  if (!find_port(*owner->device, port) || pkey != 0xffff) return c.refuse_minus_one(ENOENT);
  return 0;
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* out) {
  call c(verb::query_pkey, context);
  if (c.forwarded()) return forward<int>(c, "ibv_query_pkey", context, port, index, out);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "pkey")) return c.refuse_minus_one();
  if (!find_port(*owner->device, port) || index != 0) return c.refuse_minus_one(ENOENT);
  *out = 0xffff;
  return 0;
}

}  // extern "C"
