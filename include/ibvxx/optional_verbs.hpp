// Verbs newer than rdma-core 44. Each family is declared if the build found it in verbs.h and
// defined its macro:
//
//     IBVXX_HAVE_REG_MR_EX              ibv_reg_mr_ex                        rdma-core 59
//     IBVXX_HAVE_DMAH                   ibv_alloc_dmah, ibv_dealloc_dmah     rdma-core 59
//     IBVXX_HAVE_DM_EXPORT_DMABUF_FD    ibv_dm_export_dmabuf_fd              rdma-core 62
//     IBVXX_HAVE_QUERY_PORT_SPEED       ibv_query_port_speed                 rdma-core 62
//     IBVXX_HAVE_BUF                    ibv_alloc_buf and its family         rdma-core 64
//     IBVXX_HAVE_EXPORT_BUF_DMABUF_FD   ibv_export_buf_dmabuf_fd             rdma-core 65
//     IBVXX_HAVE_COMP_CNTR              ibv_create_comp_cntr and its family  rdma-core 65
//
// A macro that is not defined, or 0, excludes the family. Meson, pkg-config and CMake define what
// they found; a build that only uses -I defines those that its rdma-core has.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/checks.hpp>
#include <ibvxx/dmabuf.hpp>
#include <ibvxx/fd.hpp>
#include <ibvxx/handle.hpp>
#include <ibvxx/memory.hpp>

namespace ibvxx::inline IBVXX_RESULT_KIND {

#if defined(IBVXX_HAVE_DMAH) && IBVXX_HAVE_DMAH

struct dmah_deleter : object_deleter<dmah_deleter, ibv_dmah, verb::dealloc_dmah> {
  static constexpr const char* users = "a memory region";
  [[nodiscard]] static int destroy(ibv_dmah* dmah) noexcept { return ::ibv_dealloc_dmah(dmah); }
};
/// A DMA handle: hints on how the device accesses memory, given to reg_mr_ex. Deregister the
/// regions created with it first: EBUSY otherwise.
using unique_dmah = unique_handle<ibv_dmah*, dmah_deleter>;

/// Allocates a DMA handle; comp_mask selects the fields of `attributes` that are valid. EOPNOTSUPP
/// from most providers.
[[nodiscard]] inline result<unique_dmah> alloc_dmah(ref<ibv_context> context,
                                                    ibv_dmah_init_attr attributes) noexcept {
  if (!context.get()) return detail::null_argument(verb::alloc_dmah, "context");
  auto dmah = detail::obtain<unique_dmah>(verb::alloc_dmah, context.get(), [&]() noexcept {
    return ::ibv_alloc_dmah(context.get(), &attributes);
  });
  if (!dmah)
    dmah.error().explain("comp_mask 0x%x, cpu_id %u, ph %u", attributes.comp_mask,
                         attributes.cpu_id, unsigned{attributes.ph});
  return dmah;
}

#endif

#if defined(IBVXX_HAVE_REG_MR_EX) && IBVXX_HAVE_REG_MR_EX

/// Registers memory of any kind: comp_mask selects the fields of `attributes` that are valid, and
/// exactly one of ADDR and FD must be among them. A descriptor stays the caller's, as in
/// reg_dmabuf_mr.
[[nodiscard]] inline result<unique_mr> reg_mr_ex(ref<ibv_pd> pd,
                                                 ibv_mr_init_attr attributes) noexcept {
  constexpr verb call = verb::reg_mr_ex;
  if (!pd.get()) return detail::null_argument(call, "pd");
  const std::uint64_t mask = attributes.comp_mask;
  const bool by_address = (mask & IBV_REG_MR_MASK_ADDR) != 0;
  const bool by_descriptor = (mask & IBV_REG_MR_MASK_FD) != 0;
  if (by_address == by_descriptor)
    return failure(detail::refusal(call, pd->context)
                       .explain("attributes.comp_mask 0x%llx needs exactly one of ADDR and FD",
                                static_cast<unsigned long long>(mask)));
  if (by_descriptor && attributes.fd < 0)
    return failure(
        detail::refusal(call, pd->context).explain("attributes.fd %d is negative", attributes.fd));
  if ((mask & IBV_REG_MR_MASK_DMAH) != 0 && !attributes.dmah)
    return detail::null_argument(call, pd->context, "attributes.dmah");
#if defined(IBVXX_HAVE_BUF) && IBVXX_HAVE_BUF
  if ((mask & IBV_REG_MR_MASK_BUF) != 0 && !attributes.buf)
    return detail::null_argument(call, pd->context, "attributes.buf");
#endif
  if (auto valid = by_address ? detail::check_region(call, pd->context, attributes.addr,
                                                     attributes.length, attributes.access)
                              : detail::check_access(call, pd->context, attributes.access);
      !valid)
    return failure(valid.error());
  auto mr = detail::obtain<unique_mr>(
      call, pd->context, [&]() noexcept { return ::ibv_reg_mr_ex(pd.get(), &attributes); });
  if (!mr) {
    mr.error().explain("%zu bytes, access 0x%x, comp_mask 0x%llx", attributes.length,
                       static_cast<unsigned>(attributes.access),
                       static_cast<unsigned long long>(mask));
    if (mr.error().code() == ENOMEM) detail::explain_no_memory(mr.error(), pd->context);
  }
  return mr;
}

#endif

#if defined(IBVXX_HAVE_DM_EXPORT_DMABUF_FD) && IBVXX_HAVE_DM_EXPORT_DMABUF_FD

/// Exports device memory as a DMA buffer: a new descriptor, for other devices to register
/// (reg_dmabuf_mr) or map.
[[nodiscard]] inline result<unique_fd> dm_export_dmabuf_fd(ref<ibv_dm> dm) noexcept {
  if (!dm.get()) return detail::null_argument(verb::dm_export_dmabuf_fd, "dm");
  errno = 0;
  const int fd = ::ibv_dm_export_dmabuf_fd(dm.get());
  if (fd >= 0) [[likely]]
    return unique_fd(fd);
  return failure(error(verb::dm_export_dmabuf_fd, errno).on(dm->context));
}

#endif

#if defined(IBVXX_HAVE_QUERY_PORT_SPEED) && IBVXX_HAVE_QUERY_PORT_SPEED

/// The effective speed of a port, in units of 100 Mbit/s; ports count from 1.
[[nodiscard]] inline result<std::uint64_t> query_port_speed(ref<ibv_context> context,
                                                            int port) noexcept {
  constexpr verb call = verb::query_port_speed;
  if (!context.get()) return detail::null_argument(call, "context");
  if (port < 1)
    return failure(detail::refusal(call, context.get()).explain("port %d is below 1", port));
  std::uint64_t speed = 0;
  const int code = ::ibv_query_port_speed(context.get(), static_cast<std::uint32_t>(port), &speed);
  if (code == 0) [[likely]]
    return speed;
  return failure(error(call, code).on(context.get()).explain("port %d", port));
}

#endif

#if defined(IBVXX_HAVE_BUF) && IBVXX_HAVE_BUF

struct buf_deleter {
  static constexpr verb call = verb::free_buf;
  static constexpr ibv_buf* empty = nullptr;
  [[nodiscard]] static int destroy(ibv_buf* buf) noexcept {
    ::ibv_free_buf(buf);
    return 0;
  }
  [[nodiscard, gnu::cold]] static error explain(ibv_buf*, int code) noexcept {
    return {call, code};
  }
  void operator()(ibv_buf* buf) const noexcept {
    unique_handle<ibv_buf*, buf_deleter> destroyed_here(buf);
  }
};
/// Memory that the provider allocated. Deregister the regions on it first, and free it before its
/// protection domain: the verb reports no failure.
using unique_buf = unique_handle<ibv_buf*, buf_deleter>;

/// Memory that the provider allocated, with its address and size.
struct allocated_buf {
  unique_buf buf{};
  void* address = nullptr;  ///< page-aligned; valid while `buf` owns the memory
  std::size_t size = 0;     ///< in bytes
};

/// Allocates `size` bytes of the kind that the provider chooses for `pd`.
[[nodiscard]] inline result<allocated_buf> alloc_buf(ref<ibv_pd> pd, std::size_t size) noexcept {
  constexpr verb call = verb::alloc_buf;
  if (!pd.get()) return detail::null_argument(call, "pd");
  if (size == 0)
    return failure(
        detail::refusal(call, pd->context).explain("size is 0: at least 1 byte is needed"));
  ibv_buf* buf = nullptr;
  errno = 0;
  if (void* address = ::ibv_alloc_buf(pd.get(), size, &buf)) [[likely]]
    return allocated_buf{unique_buf(buf), address, size};
  error e(call, errno);
  return failure(e.on(pd->context).explain("%zu bytes", size));
}

/// Registers `length` bytes at `address` inside a buffer from alloc_buf on the same `pd`.
[[nodiscard]] inline result<unique_mr> reg_buf_mr(ref<ibv_pd> pd, ref<ibv_buf> buf, void* address,
                                                  std::size_t length, int access) noexcept {
  constexpr verb call = verb::reg_buf_mr;
  if (!pd.get()) return detail::null_argument(call, "pd");
  if (!buf.get()) return detail::null_argument(call, pd->context, "buf");
  if (auto valid = detail::check_region(call, pd->context, address, length, access); !valid)
    return failure(valid.error());
  auto mr = detail::obtain<unique_mr>(call, pd->context, [&]() noexcept {
    return ::ibv_reg_buf_mr(pd.get(), buf.get(), address, length, access);
  });
  if (!mr)
    mr.error().explain("%zu bytes at %p, access 0x%x", length, address,
                       static_cast<unsigned>(access));
  return mr;
}

#endif

#if defined(IBVXX_HAVE_EXPORT_BUF_DMABUF_FD) && IBVXX_HAVE_EXPORT_BUF_DMABUF_FD

/// Exports the buffer as a DMA buffer: a new descriptor. ENODATA if it is ordinary memory.
[[nodiscard]] inline result<unique_fd> export_buf_dmabuf_fd(ref<ibv_buf> buf) noexcept {
  if (!buf.get()) return detail::null_argument(verb::export_buf_dmabuf_fd, "buf");
  errno = 0;
  const int fd = ::ibv_export_buf_dmabuf_fd(buf.get());
  if (fd >= 0) [[likely]]
    return unique_fd(fd);
  return failure(error(verb::export_buf_dmabuf_fd, errno));
}

#endif

#if defined(IBVXX_HAVE_COMP_CNTR) && IBVXX_HAVE_COMP_CNTR

struct comp_cntr_deleter
    : object_deleter<comp_cntr_deleter, ibv_comp_cntr, verb::destroy_comp_cntr> {
  static constexpr const char* users = "a queue pair";
  [[nodiscard]] static int destroy(ibv_comp_cntr* counter) noexcept {
    return ::ibv_destroy_comp_cntr(counter);
  }
};
/// A completion counter: two 64-bit counts, of completions and of errors. It stays attached until
/// its queue pair is destroyed: destroy that first, EBUSY otherwise.
using unique_comp_cntr = unique_handle<ibv_comp_cntr*, comp_cntr_deleter>;

/// The limits of the device's completion counters.
[[nodiscard]] inline result<ibv_comp_cntr_caps> query_comp_cntr_caps(
    ref<ibv_context> context) noexcept {
  if (!context.get()) return detail::null_argument(verb::query_comp_cntr_caps, "context");
  ibv_comp_cntr_caps capabilities{};
  const int code = ::ibv_query_comp_cntr_caps(context.get(), &capabilities);
  if (code == 0) [[likely]]
    return capabilities;
  return failure(error(verb::query_comp_cntr_caps, code).on(context.get()));
}

/// Creates a completion counter, of work requests or of bytes. Errors: ENOTSUP, ENOMEM.
[[nodiscard]] inline result<unique_comp_cntr> create_comp_cntr(
    ref<ibv_context> context, ibv_comp_cntr_init_attr attributes = {}) noexcept {
  constexpr verb call = verb::create_comp_cntr;
  if (!context.get()) return detail::null_argument(call, "context");
  auto counter = detail::obtain<unique_comp_cntr>(call, context.get(), [&]() noexcept {
    return ::ibv_create_comp_cntr(context.get(), &attributes);
  });
  if (!counter)
    counter.error().explain("type %d, flags 0x%x", static_cast<int>(attributes.type),
                            attributes.flags);
  return counter;
}

/// Counts the operations in `attributes.op_mask` (ibv_qp_attach_comp_cntr_op) of a queue pair in
/// RESET or INIT. Errors: EINVAL (state), EBUSY (one of them is already counted), ENOTSUP.
[[nodiscard]] inline result<void> qp_attach_comp_cntr(
    ref<ibv_qp> qp, ref<ibv_comp_cntr> counter, ibv_qp_attach_comp_cntr_attr attributes) noexcept {
  constexpr verb call = verb::qp_attach_comp_cntr;
  if (!qp.get()) return detail::null_argument(call, "qp");
  if (!counter.get()) return detail::null_argument(call, qp->context, "counter");
  auto done = detail::check(call, ::ibv_qp_attach_comp_cntr(qp.get(), counter.get(), &attributes),
                            qp->context);
  if (!done) done.error().explain("QP 0x%x, op_mask 0x%x", qp->qp_num, attributes.op_mask);
  return done;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

template <class Call>
[[nodiscard]] result<void> change_comp_cntr(verb call, ref<ibv_comp_cntr> counter,
                                            Call&& change) noexcept {
  if (!counter.get()) return null_argument(call, "counter");
  return check(call, change(), counter->context);
}

template <class Call>
[[nodiscard]] result<std::uint64_t> read_count(verb call, ref<ibv_comp_cntr> counter,
                                               Call&& read) noexcept {
  if (!counter.get()) return null_argument(call, "counter");
  std::uint64_t value = 0;
  const int code = read(&value);
  if (code == 0) [[likely]]
    return value;
  return failure(error(call, code).on(counter->context));
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Sets the count of completions. Stop the traffic first: what is counted meanwhile may be lost,
/// and a read may return an older value.
[[nodiscard]] inline result<void> set_comp_cntr(ref<ibv_comp_cntr> counter,
                                                std::uint64_t value) noexcept {
  return detail::change_comp_cntr(verb::set_comp_cntr, counter, [&]() noexcept {
    return ::ibv_set_comp_cntr(counter.get(), value);
  });
}

/// Sets the count of errors; as set_comp_cntr.
[[nodiscard]] inline result<void> set_err_comp_cntr(ref<ibv_comp_cntr> counter,
                                                    std::uint64_t value) noexcept {
  return detail::change_comp_cntr(verb::set_err_comp_cntr, counter, [&]() noexcept {
    return ::ibv_set_err_comp_cntr(counter.get(), value);
  });
}

/// Adds to the count of completions. A read may return an older value.
[[nodiscard]] inline result<void> inc_comp_cntr(ref<ibv_comp_cntr> counter,
                                                std::uint64_t amount) noexcept {
  return detail::change_comp_cntr(verb::inc_comp_cntr, counter, [&]() noexcept {
    return ::ibv_inc_comp_cntr(counter.get(), amount);
  });
}

/// Adds to the count of errors; as inc_comp_cntr.
[[nodiscard]] inline result<void> inc_err_comp_cntr(ref<ibv_comp_cntr> counter,
                                                    std::uint64_t amount) noexcept {
  return detail::change_comp_cntr(verb::inc_err_comp_cntr, counter, [&]() noexcept {
    return ::ibv_inc_err_comp_cntr(counter.get(), amount);
  });
}

/// The count of completions.
[[nodiscard]] inline result<std::uint64_t> read_comp_cntr(ref<ibv_comp_cntr> counter) noexcept {
  return detail::read_count(verb::read_comp_cntr, counter, [&](std::uint64_t* value) noexcept {
    return ::ibv_read_comp_cntr(counter.get(), value);
  });
}

/// The count of errors.
[[nodiscard]] inline result<std::uint64_t> read_err_comp_cntr(ref<ibv_comp_cntr> counter) noexcept {
  return detail::read_count(verb::read_err_comp_cntr, counter, [&](std::uint64_t* value) noexcept {
    return ::ibv_read_err_comp_cntr(counter.get(), value);
  });
}

#endif

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
