#include "intercept/domain.hpp"

#include "device/domain.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attributes) {
  return intercepted(verb::alloc_td, &verbs_context::alloc_td, &device::alloc_td, context,
                     attributes);
}

int dealloc_td(ibv_td* td) {
  return intercepted(verb::dealloc_td, &verbs_context::dealloc_td, &device::dealloc_td, td);
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) {
  return intercepted(verb::alloc_parent_domain, &verbs_context::alloc_parent_domain,
                     &device::alloc_parent_domain, context, attributes);
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attributes) {
  return intercepted(verb::open_xrcd, &verbs_context::open_xrcd, &device::open_xrcd, context,
                     attributes);
}

int close_xrcd(ibv_xrcd* xrcd) {
  return intercepted(verb::close_xrcd, &verbs_context::close_xrcd, &device::close_xrcd, xrcd);
}

}  // namespace

void install_domain_operations(verbs_context& context) noexcept {
  context.alloc_td = &alloc_td;
  context.dealloc_td = &dealloc_td;
  context.alloc_parent_domain = &alloc_parent_domain;
  context.open_xrcd = &open_xrcd;
  context.close_xrcd = &close_xrcd;
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return intercepted(verb::alloc_pd, exported{"ibv_alloc_pd"}, &device::alloc_pd, context);
}

int ibv_dealloc_pd(ibv_pd* pd) {
  return intercepted(verb::dealloc_pd, exported{"ibv_dealloc_pd"}, &device::dealloc_pd, pd);
}

ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  return intercepted(verb::import_pd, exported{"ibv_import_pd"}, &device::import_pd, context,
                     handle);
}

void ibv_unimport_pd(ibv_pd* pd) {
  return intercepted(verb::unimport_pd, exported{"ibv_unimport_pd"}, &device::unimport_pd, pd);
}

}  // extern "C"
