// The defaults of described devices (ibvxx/shim/device.hpp).
#include <arpa/inet.h>

#include <cstring>
#include <ibvxx/shim/device.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace ibvxx::shim {

ibv_gid gid(std::string_view text) {
  ibv_gid parsed{};
  if (::inet_pton(AF_INET6, std::string(text).c_str(), parsed.raw) != 1)
    throw std::invalid_argument("shim: '" + std::string(text) + "' is no GID: an IPv6 address is");
  return parsed;
}

std::vector<gid_slot> port_description::default_gids() {
  return {{gid("fe80::2:c9ff:fe00:1"), IBV_GID_TYPE_ROCE_V2, 1},
          {gid("::ffff:10.0.0.1"), IBV_GID_TYPE_ROCE_V2, 1}};
}

ibv_device_attr device_description::default_limits() {
  ibv_device_attr limits{};
  std::strcpy(limits.fw_ver, "0.0.0");
  limits.vendor_id = 0xffffff;
  limits.max_mr_size = UINT64_MAX;
  limits.page_size_cap = 0xfffff000;
  limits.max_qp = 1048560;
  limits.max_qp_wr = 1048576;
  limits.device_cap_flags =
      IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_AUTO_PATH_MIG |
      IBV_DEVICE_CHANGE_PHY_PORT | IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_PORT_ACTIVE_EVENT |
      IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
      IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  limits.max_sge = 32;
  limits.max_sge_rd = 32;
  limits.max_cq = 1048576;
  limits.max_cqe = 32767;
  limits.max_mr = 524287;
  limits.max_pd = 1048576;
  limits.max_qp_rd_atom = 128;
  limits.max_res_rd_atom = 258048;
  limits.max_qp_init_rd_atom = 128;
  limits.atomic_cap = IBV_ATOMIC_HCA;
  limits.max_mw = 524287;
  limits.max_mcast_grp = 8192;
  limits.max_mcast_qp_attach = 56;
  limits.max_total_mcast_qp_attach = 458752;
  limits.max_ah = 32767;
  limits.max_srq = 917503;
  limits.max_srq_wr = 1048576;
  limits.max_srq_sge = 27;
  limits.max_pkeys = 64;
  limits.local_ca_ack_delay = 15;
  return limits;
}

device_features device_features::all() {
  device_features offers;
  for (bool device_features::*one : {&device_features::thread_domains,
                                     &device_features::parent_domains,
                                     &device_features::xrc,
                                     &device_features::memory_windows,
                                     &device_features::device_memory,
                                     &device_features::null_regions,
                                     &device_features::dmabuf_regions,
                                     &device_features::on_demand_paging,
                                     &device_features::reregistration,
                                     &device_features::advice,
                                     &device_features::imports,
                                     &device_features::extended_cqs,
                                     &device_features::completion_details,
                                     &device_features::cq_moderation,
                                     &device_features::extended_qps,
                                     &device_features::qp_create_flags,
                                     &device_features::raw_packets,
                                     &device_features::tag_matching,
                                     &device_features::work_queues,
                                     &device_features::flows,
                                     &device_features::flow_actions,
                                     &device_features::counters,
                                     &device_features::real_time_values,
                                     &device_features::rate_limits,
                                     &device_features::connection_options})
    offers.*one = true;
  return offers;
}

device_description device_description::hardware(std::string name) {
  device_description device;
  device.name = std::move(name);
  device.features = device_features::all();
  device.behaviour = device_behaviour::hardware();
  device.max_dm_size = 1U << 18;
  device.limits.device_cap_flags |= IBV_DEVICE_XRC;
  return device;
}

}  // namespace ibvxx::shim
