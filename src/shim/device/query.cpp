#include "device/query.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "device/context.hpp"

namespace ibvxx::shim {
namespace {

/// Describes a port; `size`: of the caller's ibv_port_attr, which may be an older one.
int answer_port(call& c, ibv_context* context, std::uint8_t number, ibv_port_attr* out,
                std::size_t size) noexcept {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "port_attr")) return c.refuse_code();
  std::memset(out, 0, std::min(size, sizeof *out));  // before the command (measured)
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

}  // namespace

namespace device {

int query_device(call& c, ibv_context* context, ibv_device_attr* out) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "device_attr")) return c.refuse_code();
  *out = owner->device->described.limits;
  return 0;
}

int query_device_ex(call& c, ibv_context* context, const ibv_query_device_ex_input*,
                    ibv_device_attr_ex* out, std::size_t size) {
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

int query_port(call& c, ibv_context* context, std::uint8_t port, ibv_port_attr* out,
               std::size_t size) {
  return answer_port(c, context, port, out, size);
}

// The exported function fills the compatibility structure only, which lacks the fields that were
// added to ibv_port_attr later.
int query_port_compat(call& c, ibv_context* context, std::uint8_t port,
                      _compat_ibv_port_attr* out) {
  constexpr std::size_t compat_size = 48;
  return answer_port(c, context, port, reinterpret_cast<ibv_port_attr*>(out), compat_size);
}

// Counts calls instead of nanoseconds, so that the same program gets the same answers.
int query_rt_values(call& c, ibv_context* context, ibv_values_ex* values) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(values, "values")) return c.refuse_code();
  if (!owner->offers().real_time_values) return EOPNOTSUPP;
  if ((values->comp_mask & ~std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) return EINVAL;
  if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0)
    values->raw_clock = {0, static_cast<long>(c.index() % 1'000'000'000)};
  return 0;
}

int query_gid(call& c, ibv_context* context, std::uint8_t port, int index, ibv_gid* out) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "gid")) return c.refuse_minus_one();
  const port_description* described = find_port(*owner->device, port);
  if (!described || index < 0 || index >= described->gid_table_size) return c.refuse_minus_one();
  const auto slot = static_cast<std::size_t>(index);
  *out = slot < described->gids.size() ? described->gids[slot].gid : ibv_gid{};
  return 0;
}

int query_gid_ex(call& c, ibv_context* context, std::uint32_t port, std::uint32_t index,
                 ibv_gid_entry* out, std::uint32_t flags, std::size_t) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "entry")) return c.refuse_code();
  const port_description* described = find_port(*owner->device, port);
  if (!described || flags != 0 || index >= static_cast<std::uint32_t>(described->gid_table_size))
    return call::from_kernel(EINVAL);
  if (!fill_gid_entry(*described, port, index, *out)) return call::from_kernel(ENODATA);
  return 0;
}

ssize_t query_gid_table(call& c, ibv_context* context, ibv_gid_entry* entries,
                        std::size_t max_entries, std::uint32_t flags, std::size_t) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return -c.refuse_code();
  if (flags != 0) return -call::from_kernel(EINVAL);
  // The kernel refuses 0 entries, even for an empty table (UVERBS_METHOD_QUERY_GID_TABLE).
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
int query_gid_type(call& c, ibv_context* context, std::uint8_t port, unsigned index, int* type) {
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

int get_pkey_index(call& c, ibv_context* context, std::uint8_t port, __be16 pkey) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_minus_one();
  if (!find_port(*owner->device, port) || pkey != 0xffff) return c.refuse_minus_one(ENOENT);
  return 0;
}

int query_pkey(call& c, ibv_context* context, std::uint8_t port, int index, __be16* out) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(out, "pkey")) return c.refuse_minus_one();
  if (!find_port(*owner->device, port) || index != 0) return c.refuse_minus_one(ENOENT);
  *out = 0xffff;
  return 0;
}

}  // namespace device
}  // namespace ibvxx::shim
