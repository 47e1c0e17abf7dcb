// The device list, opening, and what a device says of itself.
#include <unistd.h>

#include "groups.hpp"

namespace conformance {
namespace {

void list() {
  int count = -1;
  ibv_device** const devices =
      probe_pointer("get_device_list", [&] { return ibv_get_device_list(&count); });
  probe("get_device_list-count", std::to_string(count));
  for (int i = 0; i < count; ++i) {
    ibv_device* const device = devices[i];
    probe("device-" + std::to_string(i), std::string(ibv_get_device_name(device)) + " " +
                                             device->dev_name + " " + device->dev_path + " " +
                                             device->ibdev_path);
    probe("device-" + std::to_string(i) + "-type",
          std::string(ibv_node_type_str(device->node_type)) + ", transport " +
              std::to_string(device->transport_type));
    probe("device-" + std::to_string(i) + "-guid",
          ibv_get_device_guid(device) != 0 ? "set" : "zero");
    probe("device-" + std::to_string(i) + "-index", std::to_string(ibv_get_device_index(device)));
  }
  probe("get_device_list-end", devices[count] == nullptr ? "NULL" : "not NULL");
  ibv_device** const again = ibv_get_device_list(nullptr);
  probe("get_device_list-again", again != devices ? "another list" : "the same list");
  probe("get_device_list-again-device", again[0] == devices[0] ? "same device" : "other device");
  ibv_free_device_list(again);
  // Open contexts do not need the list.
  ibv_context* const context = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  probe("open-after-list-freed-name", ibv_get_device_name(context->device));
  probe("close", code_name(ibv_close_device(context)));
}

void open(const setting& s) {
  const auto second =
      own(probe_pointer("open-twice", [&] { return ibv_open_device(s.context->device); }));
  probe("open-twice-context", second.get() != s.context ? "another context" : "the same context");
  probe("num_comp_vectors", std::to_string(second->num_comp_vectors));
  probe("async_fd", second->async_fd >= 0 ? "valid" : "none");
  probe("cmd_fd", second->cmd_fd >= 0 ? "valid" : "none");
  // Case 39: 2 is IBV_FORK_UNNEEDED, the kernel copies pinned pages when the process forks.
  probe("is_fork_initialized", std::to_string(ibv_is_fork_initialized()));
  ibv_context* const holding = ibv_open_device(s.context->device);
  ibv_alloc_pd(holding);  // freed with its context
  probe_code("close-with-pd", [&] { return ibv_close_device(holding); });
}

void limits(const setting& s) {
  ibv_device_attr attr{};
  probe_code("query_device", [&] { return ibv_query_device(s.context, &attr); });
  const auto number = [](const char* field, unsigned long long value) {
    probe(field, std::to_string(value));
  };
  probe("fw_ver", std::string("\"") + attr.fw_ver + "\"");
  probe("node_guid", attr.node_guid != 0 ? "set" : "zero");
  probe("node_guid-is-device-guid",
        attr.node_guid == ibv_get_device_guid(s.context->device) ? "yes" : "no");
  probe("sys_image_guid", attr.sys_image_guid != 0 ? "set" : "zero");
  probe("max_mr_size", hex(attr.max_mr_size));
  probe("page_size_cap", hex(attr.page_size_cap));
  probe("device_cap_flags", hex(attr.device_cap_flags));
  number("vendor_id", attr.vendor_id);
  number("vendor_part_id", attr.vendor_part_id);
  number("hw_ver", attr.hw_ver);
  number("max_qp", static_cast<unsigned>(attr.max_qp));
  number("max_qp_wr", static_cast<unsigned>(attr.max_qp_wr));
  number("max_sge", static_cast<unsigned>(attr.max_sge));
  number("max_sge_rd", static_cast<unsigned>(attr.max_sge_rd));
  number("max_cq", static_cast<unsigned>(attr.max_cq));
  number("max_cqe", static_cast<unsigned>(attr.max_cqe));
  number("max_mr", static_cast<unsigned>(attr.max_mr));
  number("max_pd", static_cast<unsigned>(attr.max_pd));
  number("max_qp_rd_atom", static_cast<unsigned>(attr.max_qp_rd_atom));
  number("max_ee_rd_atom", static_cast<unsigned>(attr.max_ee_rd_atom));
  number("max_res_rd_atom", static_cast<unsigned>(attr.max_res_rd_atom));
  number("max_qp_init_rd_atom", static_cast<unsigned>(attr.max_qp_init_rd_atom));
  number("max_ee_init_rd_atom", static_cast<unsigned>(attr.max_ee_init_rd_atom));
  number("atomic_cap", static_cast<unsigned>(attr.atomic_cap));
  number("max_ee", static_cast<unsigned>(attr.max_ee));
  number("max_rdd", static_cast<unsigned>(attr.max_rdd));
  number("max_mw", static_cast<unsigned>(attr.max_mw));
  number("max_raw_ipv6_qp", static_cast<unsigned>(attr.max_raw_ipv6_qp));
  number("max_raw_ethy_qp", static_cast<unsigned>(attr.max_raw_ethy_qp));
  number("max_mcast_grp", static_cast<unsigned>(attr.max_mcast_grp));
  number("max_mcast_qp_attach", static_cast<unsigned>(attr.max_mcast_qp_attach));
  number("max_total_mcast_qp_attach", static_cast<unsigned>(attr.max_total_mcast_qp_attach));
  number("max_ah", static_cast<unsigned>(attr.max_ah));
  number("max_fmr", static_cast<unsigned>(attr.max_fmr));
  number("max_map_per_fmr", static_cast<unsigned>(attr.max_map_per_fmr));
  number("max_srq", static_cast<unsigned>(attr.max_srq));
  number("max_srq_wr", static_cast<unsigned>(attr.max_srq_wr));
  number("max_srq_sge", static_cast<unsigned>(attr.max_srq_sge));
  number("max_pkeys", attr.max_pkeys);
  number("local_ca_ack_delay", attr.local_ca_ack_delay);
  number("phys_port_cnt", attr.phys_port_cnt);
}

void extended_limits(const setting& s) {
  ibv_device_attr_ex attr{};
  attr.comp_mask = 0xffff;
  probe_code("query_device_ex", [&] { return ibv_query_device_ex(s.context, nullptr, &attr); });
  ibv_device_attr plain{};
  ibv_query_device(s.context, &plain);
  probe("ex-agrees-max_cqe", attr.orig_attr.max_cqe == plain.max_cqe ? "yes" : "no");
  probe("ex-comp_mask", hex(attr.comp_mask));
  probe("ex-odp", hex(attr.odp_caps.general_caps));
  probe("ex-completion_timestamp_mask", hex(attr.completion_timestamp_mask));
  probe("ex-hca_core_clock", std::to_string(attr.hca_core_clock));
  probe("ex-device_cap_flags_ex", hex(attr.device_cap_flags_ex));
  probe("ex-max_tso", std::to_string(attr.tso_caps.max_tso));
  probe("ex-rss", hex(attr.rss_caps.supported_qpts));
  probe("ex-max_wq_type_rq", std::to_string(attr.max_wq_type_rq));
  probe("ex-packet_pacing", std::to_string(attr.packet_pacing_caps.qp_rate_limit_max));
  probe("ex-raw_packet_caps", hex(attr.raw_packet_caps));
  probe("ex-tm-max_num_tags", std::to_string(attr.tm_caps.max_num_tags));
  probe("ex-cq_mod-max_cq_count", std::to_string(attr.cq_mod_caps.max_cq_count));
  probe("ex-max_dm_size", std::to_string(attr.max_dm_size));
  probe("ex-pci_atomic", std::to_string(attr.pci_atomic_caps.compare_swap));
  probe("ex-phys_port_cnt_ex", std::to_string(attr.phys_port_cnt_ex));
  ibv_query_device_ex_input input{};
  probe_code("query_device_ex-input",
             [&] { return ibv_query_device_ex(s.context, &input, &attr); });
  input.comp_mask = 1;
  probe_code("query_device_ex-input-comp_mask",
             [&] { return ibv_query_device_ex(s.context, &input, &attr); });
}

void imports(const setting& s) {
  probe_pointer("import_device-bad-fd", [] { return ibv_import_device(-1); });
  probe_pointer("import_pd-unknown", [&] { return ibv_import_pd(s.context, 12345); });
  probe_pointer("import_mr-unknown", [&] { return ibv_import_mr(s.pd, 12345); });
  const int fd = ::dup(s.context->cmd_fd);
  const auto imported = own(probe_pointer("import_device", [&] { return ibv_import_device(fd); }));
  if (!imported) {
    ::close(fd);
    return;
  }
  ibv_pd* const pd =
      probe_pointer("import_pd", [&] { return ibv_import_pd(imported.get(), s.pd->handle); });
  if (pd) ibv_unimport_pd(pd);
}

}  // namespace

void probe_device(const setting& s) {
  list();
  open(s);
  limits(s);
  extended_limits(s);
  imports(s);
}

}  // namespace conformance
