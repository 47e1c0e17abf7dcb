// Protection domains, thread domains, parent domains, and XRC domains.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/call.hpp"
#include "device/context.hpp"

namespace ibvxx::shim {

struct sim_td {
  static constexpr object_kind kind = object_kind::td;
  ibv_td verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
};

/// A protection domain, a parent domain, or an imported one.
struct sim_pd {
  static constexpr object_kind kind = object_kind::pd;
  ibv_pd verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  const void* domain = this;           // identity in access checks: the original PD's
  const void* thread_scope = nullptr;  // a parent domain's thread domain
  bool imported = false;
};

/// An XRC domain; those opened through one inode have the same `domain`.
struct sim_xrcd {
  static constexpr object_kind kind = object_kind::xrcd;
  ibv_xrcd verbs{};
  abi_padding padding{};
  sim_context* context = nullptr;
  std::uint64_t device = 0, inode = 0;  // 0: private
  const void* domain = this;
};

namespace device {

ibv_td* alloc_td(call& c, ibv_context* context, ibv_td_init_attr* attributes);
int dealloc_td(call& c, ibv_td* td);
ibv_pd* alloc_parent_domain(call& c, ibv_context* context, ibv_parent_domain_init_attr* attributes);
ibv_xrcd* open_xrcd(call& c, ibv_context* context, ibv_xrcd_init_attr* attributes);
int close_xrcd(call& c, ibv_xrcd* xrcd);
ibv_pd* alloc_pd(call& c, ibv_context* context);
int dealloc_pd(call& c, ibv_pd* pd);
ibv_pd* import_pd(call& c, ibv_context* context, std::uint32_t handle);
void unimport_pd(call& c, ibv_pd* pd);

}  // namespace device

}  // namespace ibvxx::shim
