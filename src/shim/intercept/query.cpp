#include "intercept/query.hpp"

#include "device/query.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

int query_port(ibv_context* context, std::uint8_t number, ibv_port_attr* out, std::size_t size) {
  return intercepted(verb::query_port, &verbs_context::query_port, &device::query_port, context,
                     number, out, size);
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* out, std::size_t size) {
  return intercepted(verb::query_device_ex, &verbs_context::query_device_ex,
                     &device::query_device_ex, context, input, out, size);
}

int query_rt_values(ibv_context* context, ibv_values_ex* values) {
  return intercepted(verb::query_rt_values_ex, &verbs_context::query_rt_values,
                     &device::query_rt_values, context, values);
}

}  // namespace

void install_query_operations(verbs_context& context) noexcept {
  context.query_port = &query_port;
  context.query_device_ex = &query_device_ex;
  context.query_rt_values = &query_rt_values;
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  return intercepted(verb::query_device, exported{"ibv_query_device"}, &device::query_device,
                     context, out);
}

int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* out) {
  return intercepted(verb::query_port, exported{"ibv_query_port"}, &device::query_port_compat,
                     context, port, out);
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* out) {
  return intercepted(verb::query_gid, exported{"ibv_query_gid"}, &device::query_gid, context, port,
                     index, out);
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                      ibv_gid_entry* out, std::uint32_t flags, std::size_t entry_size) {
  return intercepted(verb::query_gid_ex, exported{"_ibv_query_gid_ex"}, &device::query_gid_ex,
                     context, port, index, out, flags, entry_size);
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t max_entries,
                             std::uint32_t flags, std::size_t entry_size) {
  return intercepted(verb::query_gid_table, exported{"_ibv_query_gid_table"},
                     &device::query_gid_table, context, entries, max_entries, flags, entry_size);
}

int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type) {
  return intercepted(verb::query_gid_ex, exported{"ibv_query_gid_type"}, &device::query_gid_type,
                     context, port, index, type);
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  return intercepted(verb::get_pkey_index, exported{"ibv_get_pkey_index"}, &device::get_pkey_index,
                     context, port, pkey);
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* out) {
  return intercepted(verb::query_pkey, exported{"ibv_query_pkey"}, &device::query_pkey, context,
                     port, index, out);
}

}  // extern "C"
