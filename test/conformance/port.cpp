// Ports: attributes, GID and P_Key tables, and every index that is out of range.
#include "groups.hpp"

namespace conformance {
namespace {

std::string kind(const ibv_gid& gid) {
  if (gid.global.subnet_prefix == 0 && gid.global.interface_id == 0) return "zero";
  if (gid.global.subnet_prefix == htobe64(0xfe80000000000000)) return "link-local";
  static constexpr unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(mapped, mapped + 12, gid.raw) ? "IPv4-mapped" : "other";
}

std::string told(const ibv_gid_entry& entry) {
  return kind(entry.gid) + " index " + std::to_string(entry.gid_index) + " port " +
         std::to_string(entry.port_num) + " type " + std::to_string(entry.gid_type) +
         (entry.ndev_ifindex != 0 ? " with netdev" : " without netdev");
}

int attributes(const setting& s) {
  ibv_port_attr attr{};
  probe_code("query_port", [&] { return ibv_query_port(s.context, 1, &attr); });
  const auto number = [](const char* field, unsigned long long value) {
    probe(field, std::to_string(value));
  };
  number("state", attr.state);
  number("max_mtu", attr.max_mtu);
  number("active_mtu", attr.active_mtu);
  number("gid_tbl_len", static_cast<unsigned>(attr.gid_tbl_len));
  probe("port_cap_flags", hex(attr.port_cap_flags));
  number("max_msg_sz", attr.max_msg_sz);
  number("bad_pkey_cntr", attr.bad_pkey_cntr);
  number("qkey_viol_cntr", attr.qkey_viol_cntr);
  number("pkey_tbl_len", attr.pkey_tbl_len);
  number("lid", attr.lid);
  number("sm_lid", attr.sm_lid);
  number("lmc", attr.lmc);
  number("max_vl_num", attr.max_vl_num);
  number("sm_sl", attr.sm_sl);
  number("subnet_timeout", attr.subnet_timeout);
  number("init_type_reply", attr.init_type_reply);
  number("active_width", attr.active_width);
  number("active_speed", attr.active_speed);
  number("phys_state", attr.phys_state);
  number("link_layer", attr.link_layer);
  probe("flags", hex(attr.flags));
  probe("port_cap_flags2", hex(attr.port_cap_flags2));
  for (const int port : {0, 2, 255}) {
    attr.lid = 99;
    probe_code("query_port-" + std::to_string(port),
               [&] { return ibv_query_port(s.context, static_cast<std::uint8_t>(port), &attr); });
  }
  probe("query_port-refused-structure", attr.lid == 99 ? "untouched" : "zeroed");
  ibv_query_port(s.context, 1, &attr);
  return attr.gid_tbl_len;
}

void gids(const setting& s, int length) {
  ibv_gid gid{};
  const auto query = [&](const std::string& what, int port, int index) {
    gid = {};
    if (probe_minus_one("query_gid-" + what, [&] {
          return ibv_query_gid(s.context, static_cast<std::uint8_t>(port), index, &gid);
        }) == 0)
      probe("query_gid-" + what + "-is", kind(gid));
  };
  query("0", 1, 0);
  query("1", 1, 1);
  query("empty", 1, 2);
  query("last", 1, length - 1);
  query("beyond", 1, length);
  query("minus-one", 1, -1);
  query("port-0", 0, 0);
  query("port-2", 2, 0);

  ibv_gid_entry entry{};
  const auto query_ex = [&](const std::string& what, unsigned port, unsigned index,
                            unsigned flags = 0) {
    if (probe_code("query_gid_ex-" + what,
                   [&] { return ibv_query_gid_ex(s.context, port, index, &entry, flags); }) == 0)
      probe("query_gid_ex-" + what + "-is", told(entry));
  };
  const auto end = static_cast<unsigned>(length);
  query_ex("0", 1, 0);
  query_ex("1", 1, 1);
  query_ex("empty", 1, 2);
  query_ex("last", 1, end - 1);
  query_ex("beyond", 1, end);
  query_ex("far-beyond", 1, 0xffffffff);
  query_ex("port-0", 0, 0);
  query_ex("port-2", 2, 0);
  query_ex("port-256", 256, 0);
  query_ex("flags", 1, 0, 1);
}

void gid_table(const setting& s) {
  ibv_gid_entry entries[8] = {};
  const auto query = [&](const char* what, std::size_t room, unsigned flags = 0) {
    errno = untouched;
    const ssize_t count = ibv_query_gid_table(s.context, entries, room, flags);
    const int code = errno;
    probe(std::string("query_gid_table-") + what,
          count < 0 ? code_name(static_cast<int>(count)) + ", errno " + errno_state(code)
                    : std::to_string(count));
    return count;
  };
  const ssize_t count = query("room-8", 8);
  for (ssize_t i = 0; i < count; ++i) probe("gid_table-" + std::to_string(i), told(entries[i]));
  query("room-2", 2);
  query("room-1", 1);
  query("room-0", 0);
  query("flags", 8, 1);
}

void pkeys(const setting& s) {
  __be16 pkey = 0;
  const auto query = [&](const char* what, int port, int index) {
    probe_minus_one(std::string("query_pkey-") + what, [&] {
      return ibv_query_pkey(s.context, static_cast<std::uint8_t>(port), index, &pkey);
    });
  };
  query("0", 1, 0);
  probe("query_pkey-0-is", hex(be16toh(pkey)));
  query("1", 1, 1);
  query("64", 1, 64);
  query("minus-one", 1, -1);
  query("port-0", 0, 0);
  query("port-2", 2, 0);
  const auto index = [&](const char* what, int port, unsigned wanted) {
    probe_minus_one(std::string("get_pkey_index-") + what, [&] {
      return ibv_get_pkey_index(s.context, static_cast<std::uint8_t>(port),
                                htobe16(static_cast<std::uint16_t>(wanted)));
    });
  };
  index("default", 1, 0xffff);
  index("limited-member", 1, 0x7fff);
  index("unknown", 1, 0x1234);
  index("port-2", 2, 0xffff);
}

}  // namespace

void probe_port(const setting& s) {
  const int length = attributes(s);
  gids(s, length);
  gid_table(s);
  pkeys(s);
}

}  // namespace conformance
