// Address handles and multicast memberships.
#include "device/address.hpp"

#include "device/multicast.hpp"
#include "forward/recorded_verbs.hpp"
#include "intercept/intercept.hpp"

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  return intercepted(verb::create_ah, exported{"ibv_create_ah"}, &device::create_ah, pd,
                     attributes);
}

int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* out) {
  return intercepted(verb::init_ah_from_wc, exported{"ibv_init_ah_from_wc"},
                     &device::init_ah_from_wc, context, port, wc, grh, out);
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  return intercepted(verb::create_ah_from_wc, exported{"ibv_create_ah_from_wc"},
                     &device::create_ah_from_wc, pd, wc, grh, port);
}

int ibv_destroy_ah(ibv_ah* ah) {
  return intercepted(verb::destroy_ah, exported{"ibv_destroy_ah"}, &device::destroy_ah, ah);
}

int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* address, std::uint8_t* mac,
                                std::uint16_t* vlan) {
  return intercepted(verb::resolve_eth_l2_from_gid, exported{"ibv_resolve_eth_l2_from_gid"},
                     &device::resolve_eth_l2_from_gid, context, address, mac, vlan);
}

int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return intercepted(verb::attach_mcast, &real::attach_mcast, &device::attach_mcast, qp, gid, lid);
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return intercepted(verb::detach_mcast, &real::detach_mcast, &device::detach_mcast, qp, gid, lid);
}

}  // extern "C"
