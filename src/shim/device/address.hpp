// Address handles.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"
#include "device/context.hpp"

namespace ibvxx::shim {

struct sim_ah {
  static constexpr object_kind kind = object_kind::ah;
  ibv_ah verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  const void* domain = nullptr;  // sim_pd::domain
  ibv_ah_attr attr{};
};

/// The checks of an address that both queue pairs and address handles get: 0 or the errno.
[[nodiscard]] int check_address(const sim_context& context, const ibv_ah_attr& address) noexcept;
/// An IPv4 address in a GID.
[[nodiscard]] bool is_v4_gid(const ibv_gid& gid) noexcept;

namespace device {

ibv_ah* create_ah(call& c, ibv_pd* pd, ibv_ah_attr* attributes);
int init_ah_from_wc(call& c, ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                    ibv_ah_attr* out);
ibv_ah* create_ah_from_wc(call& c, ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port);
int destroy_ah(call& c, ibv_ah* ah);
int resolve_eth_l2_from_gid(call& c, ibv_context* context, ibv_ah_attr* address, std::uint8_t* mac,
                            std::uint16_t* vlan);

}  // namespace device

}  // namespace ibvxx::shim
