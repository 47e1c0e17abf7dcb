// Protection domains, thread domains, and XRC domains.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/checks.hpp>
#include <ibvxx/detail/hints.hpp>
#include <ibvxx/handle.hpp>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct pd_deleter : object_deleter<pd_deleter, ibv_pd, verb::dealloc_pd> {
  static constexpr const char* users = "a memory region, queue pair, SRQ, AH, MW or WQ";
  [[nodiscard]] static int destroy(ibv_pd* pd) noexcept { return ::ibv_dealloc_pd(pd); }
};
/// A protection domain. Destroy what was made from it first: EBUSY otherwise.
using unique_pd = unique_handle<ibv_pd*, pd_deleter>;

/// Allocates a protection domain.
[[nodiscard]] inline result<unique_pd> alloc_pd(ref<ibv_context> context) noexcept {
  if (!context.get()) return detail::null_argument(verb::alloc_pd, "context");
  errno = 0;
  if (unique_pd pd{::ibv_alloc_pd(context.get())}) [[likely]]
    return pd;
  error e(verb::alloc_pd, errno);
  e.on(context.get());
  return failure(e);
}

struct imported_pd_deleter : object_deleter<imported_pd_deleter, ibv_pd, verb::unimport_pd> {
  static constexpr const char* users = "an object made from it";
  [[nodiscard]] static int destroy(ibv_pd* pd) noexcept {
    ::ibv_unimport_pd(pd);
    return 0;
  }
};
/// A protection domain of another context. The owner unimports it, which releases this process's
/// handle only, and never deallocates it. The process that allocated it does that, after every
/// importer has unimported it. Destroy what was created from it here first: the verb reports no
/// failure (mlx5 asserts instead).
using unique_imported_pd = unique_handle<ibv_pd*, imported_pd_deleter>;

/// Imports the protection domain with this kernel handle (`ibv_pd::handle` of the original), on a
/// context from import_device.
[[nodiscard]] inline result<unique_imported_pd> import_pd(ref<ibv_context> context,
                                                          std::uint32_t pd_handle) noexcept {
  if (!context.get()) return detail::null_argument(verb::import_pd, "context");
  auto pd = detail::obtain<unique_imported_pd>(verb::import_pd, context.get(), [&]() noexcept {
    return ::ibv_import_pd(context.get(), pd_handle);
  });
  if (!pd) pd.error().explain("pd_handle %u", pd_handle);
  return pd;
}

struct td_deleter : object_deleter<td_deleter, ibv_td, verb::dealloc_td> {
  static constexpr const char* users = "a parent domain";
  [[nodiscard]] static int destroy(ibv_td* td) noexcept { return ::ibv_dealloc_td(td); }
};
/// A thread domain: the program promises to use the objects created under it from one thread at a
/// time, so that the provider may omit its locks. It takes effect through a parent domain.
using unique_td = unique_handle<ibv_td*, td_deleter>;

/// Allocates a thread domain. EOPNOTSUPP from providers without thread domains.
[[nodiscard]] inline result<unique_td> alloc_td(ref<ibv_context> context,
                                                ibv_td_init_attr attributes = {}) noexcept {
  if (!context.get()) return detail::null_argument(verb::alloc_td, "context");
  return detail::obtain<unique_td>(verb::alloc_td, context.get(), [&]() noexcept {
    return ::ibv_alloc_td(context.get(), &attributes);
  });
}

/// Allocates a parent domain: a protection domain with a thread domain, or with allocation
/// functions of the program, usable wherever a protection domain is. `attributes.pd` must not be
/// null, `td` may be; both must outlive the parent domain (deallocating them fails with EBUSY
/// otherwise). It is deallocated like any protection domain.
[[nodiscard]] inline result<unique_pd> alloc_parent_domain(
    ref<ibv_context> context, ibv_parent_domain_init_attr attributes) noexcept {
  constexpr verb call = verb::alloc_parent_domain;
  if (!context.get()) return detail::null_argument(call, "context");
  if (!attributes.pd) return detail::null_argument(call, context.get(), "attributes.pd");
  if ((attributes.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0) {
    if (!attributes.alloc) return detail::null_argument(call, context.get(), "attributes.alloc");
    if (!attributes.free) return detail::null_argument(call, context.get(), "attributes.free");
  }
  auto pd = detail::obtain<unique_pd>(call, context.get(), [&]() noexcept {
    return ::ibv_alloc_parent_domain(context.get(), &attributes);
  });
  if (!pd) pd.error().explain("comp_mask 0x%x", attributes.comp_mask);
  return pd;
}

struct xrcd_deleter : object_deleter<xrcd_deleter, ibv_xrcd, verb::close_xrcd> {
  static constexpr const char* users = "an XRC queue pair or SRQ";
  /// ibv_close_xrcd is the one extended operation that verbs.h calls without checking that the
  /// provider has it (rdma-core 39 to 64), so it is checked here.
  [[nodiscard]] static int destroy(ibv_xrcd* xrcd) noexcept {
    const verbs_context* extended = ::verbs_get_ctx(xrcd->context);
    if (!extended || extended->sz < sizeof *extended - offsetof(verbs_context, close_xrcd) ||
        !extended->close_xrcd)
      return EOPNOTSUPP;
    return ::ibv_close_xrcd(xrcd);
  }
};
/// An XRC domain. Closing it ends this process's use; the kernel destroys the domain after its last
/// user.
using unique_xrcd = unique_handle<ibv_xrcd*, xrcd_deleter>;

/// Opens an XRC domain. Both fields of `attributes` and both bits of comp_mask are required: `fd`
/// is a file whose inode identifies the domain among processes, or -1 for a private domain;
/// `oflags` is O_CREAT, O_EXCL, or neither. The descriptor stays the caller's.
[[nodiscard]] inline result<unique_xrcd> open_xrcd(ref<ibv_context> context,
                                                   ibv_xrcd_init_attr attributes) noexcept {
  if (!context.get()) return detail::null_argument(verb::open_xrcd, "context");
  constexpr unsigned needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attributes.comp_mask & needed) != needed)
    return failure(
        detail::refusal(verb::open_xrcd, context.get())
            .explain("attributes.comp_mask 0x%x lacks FD or OFLAGS", attributes.comp_mask));
  auto xrcd = detail::obtain<unique_xrcd>(verb::open_xrcd, context.get(), [&]() noexcept {
    return ::ibv_open_xrcd(context.get(), &attributes);
  });
  if (!xrcd)
    xrcd.error().explain("fd %d, oflags 0x%x", attributes.fd,
                         static_cast<unsigned>(attributes.oflags));
  return xrcd;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
