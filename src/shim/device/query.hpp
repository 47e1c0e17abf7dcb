// Queries of devices and ports.
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "core/call.hpp"

#undef ibv_query_port

namespace ibvxx::shim::device {

int query_device(call& c, ibv_context* context, ibv_device_attr* out);
int query_device_ex(call& c, ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* out, std::size_t size);
int query_port(call& c, ibv_context* context, std::uint8_t port, ibv_port_attr* out,
               std::size_t size);
int query_port_compat(call& c, ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* out);
int query_rt_values(call& c, ibv_context* context, ibv_values_ex* values);
int query_gid(call& c, ibv_context* context, std::uint8_t port, int index, ibv_gid* out);
int query_gid_ex(call& c, ibv_context* context, std::uint32_t port, std::uint32_t index,
                 ibv_gid_entry* out, std::uint32_t flags, std::size_t entry_size);
ssize_t query_gid_table(call& c, ibv_context* context, ibv_gid_entry* entries,
                        std::size_t max_entries, std::uint32_t flags, std::size_t entry_size);
int query_gid_type(call& c, ibv_context* context, std::uint8_t port, unsigned index, int* type);
int get_pkey_index(call& c, ibv_context* context, std::uint8_t port, __be16 pkey);
int query_pkey(call& c, ibv_context* context, std::uint8_t port, int index, __be16* out);

}  // namespace ibvxx::shim::device
