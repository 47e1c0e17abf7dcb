// Address handles.
#include <arpa/inet.h>

#include "groups.hpp"

namespace conformance {

void probe_ah(const setting& s) {
  const auto create = [&](const std::string& what, auto&& change) {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.grh.dgid = s.gid;
    attr.grh.sgid_index = 1;
    attr.grh.hop_limit = 64;
    attr.port_num = 1;
    change(attr);
    return own(probe_pointer("create-" + what, [&] { return ibv_create_ah(s.pd, &attr); }));
  };
  const auto self = create("to-itself", [](ibv_ah_attr&) {});
  probe("fields", std::string(self->pd == s.pd ? "pd " : "other-pd ") +
                      (self->context == s.context ? "context" : "other-context"));
  create("without-grh", [](ibv_ah_attr& attr) { attr.is_global = 0; });
  create("is_global-2", [](ibv_ah_attr& attr) { attr.is_global = 2; });
  create("port-0", [](ibv_ah_attr& attr) { attr.port_num = 0; });
  create("port-2", [](ibv_ah_attr& attr) { attr.port_num = 2; });
  create("gid-0", [&](ibv_ah_attr& attr) {
    attr.grh.sgid_index = 0;
    ibv_query_gid(s.context, 1, 0, &attr.grh.dgid);
  });
  create("ipv4-from-link-local", [](ibv_ah_attr& attr) { attr.grh.sgid_index = 0; });
  create("empty-sgid", [](ibv_ah_attr& attr) { attr.grh.sgid_index = 5; });
  create("sgid-255", [](ibv_ah_attr& attr) { attr.grh.sgid_index = 255; });
  create("zero-dgid", [](ibv_ah_attr& attr) { attr.grh.dgid = {}; });
  create("neighbour", [](ibv_ah_attr& attr) { attr.grh.dgid.raw[15] = 77; });
  create("multicast-ipv4",
         [](ibv_ah_attr& attr) { ::inet_pton(AF_INET6, "::ffff:239.1.1.1", attr.grh.dgid.raw); });
  create("multicast-ipv6",
         [](ibv_ah_attr& attr) { ::inet_pton(AF_INET6, "ff0e::1", attr.grh.dgid.raw); });
  create("hop-limit-0", [](ibv_ah_attr& attr) { attr.grh.hop_limit = 0; });
  create("flow-label-too-wide", [](ibv_ah_attr& attr) { attr.grh.flow_label = 0xffffffff; });
  create("traffic-class", [](ibv_ah_attr& attr) { attr.grh.traffic_class = 0xff; });
  create("sl-7", [](ibv_ah_attr& attr) { attr.sl = 7; });
  create("sl-16", [](ibv_ah_attr& attr) { attr.sl = 16; });
  create("dlid", [](ibv_ah_attr& attr) { attr.dlid = 0xbeef; });
  create("static-rate", [](ibv_ah_attr& attr) { attr.static_rate = 200; });
  create("src-path-bits", [](ibv_ah_attr& attr) { attr.src_path_bits = 255; });
  const auto again = create("twice", [](ibv_ah_attr&) {});
  probe("twice-handles", again.get() != self.get() ? "differ" : "same");
  ibv_ah* const once = create("to-destroy", [](ibv_ah_attr&) {}).release();
  probe_code("destroy", [&] { return ibv_destroy_ah(once); });
}

}  // namespace conformance
