// Address handles and multicast membership.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ibvxx/detail/checks.hpp>
#include <ibvxx/handle.hpp>
#include <utility>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct ah_deleter : object_deleter<ah_deleter, ibv_ah, verb::destroy_ah> {
  static constexpr const char* users = "a work request";
  [[nodiscard]] static int destroy(ibv_ah* ah) noexcept { return ::ibv_destroy_ah(ah); }
};
/// An address handle: the destination of a datagram. Keep it until the sends that name it have
/// completed.
using unique_ah = unique_handle<ibv_ah*, ah_deleter>;

}  // namespace ibvxx::inline IBVXX_RESULT_KIND

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Explains why an address handle was not created or an address not resolved: names the index that
/// is out of range.
[[gnu::cold]] inline void explain_address(error& e, ibv_context* context,
                                          const ibv_ah_attr& address) noexcept {
  const detail::errno_guard keep;
  ibv_device_attr device;
  ibv_port_attr port;
  if (::ibv_query_device(context, &device) == 0 &&
      (address.port_num < 1 || address.port_num > device.phys_port_cnt))
    e.explain("port_num %u is outside 1..%u", unsigned{address.port_num},
              unsigned{device.phys_port_cnt});
  else if (address.is_global != 0 && ibv_query_port(context, address.port_num, &port) == 0 &&
           address.grh.sgid_index >= port.gid_tbl_len)
    e.explain("grh.sgid_index %u is outside 0..%d", unsigned{address.grh.sgid_index},
              port.gid_tbl_len - 1);
  else
    e.explain("port %u, dlid 0x%x, %s sgid_index %u", unsigned{address.port_num},
              unsigned{address.dlid}, address.is_global != 0 ? "global," : "local,",
              unsigned{address.grh.sgid_index});
}

/// The GRH argument of a verb: the caller's, or zeros for a completion without one. libibverbs
/// reads it in both cases, although its manual page says that it is ignored in the second
/// (rdma-core 44).
class grh_argument {
 public:
  explicit grh_argument(const ibv_grh* given) noexcept {
    if (given) grh_ = *given;
  }
  [[nodiscard]] ibv_grh* get() noexcept { return &grh_; }

 private:
  ibv_grh grh_{};
};

[[nodiscard]] inline result<void> check_reply(verb call, const ibv_context* context,
                                              const ibv_wc& completion, const ibv_grh* grh,
                                              int port) noexcept {
  if ((completion.wc_flags & IBV_WC_GRH) != 0 && !grh) return null_argument(call, context, "grh");
  return check_port(call, context, port);
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// Creates an address handle. Errors: EINVAL naming the port or the GID index that is out of range;
/// on RoCE also the errors of resolving the peer's MAC address, which may wait for the network.
[[nodiscard]] inline result<unique_ah> create_ah(ref<ibv_pd> pd, ibv_ah_attr attributes) noexcept {
  if (!pd.get()) return detail::null_argument(verb::create_ah, "pd");
  auto ah = detail::obtain<unique_ah>(verb::create_ah, pd->context, [&]() noexcept {
    return ::ibv_create_ah(pd.get(), &attributes);
  });
  if (!ah) detail::explain_address(ah.error(), pd->context, attributes);
  return ah;
}

/// The address of the sender of a received datagram, as attributes for create_ah. `grh` is the 40
/// bytes in front of the datagram; it may be null if the completion has no IBV_WC_GRH. `port` is
/// the port that received it. Errors: EINVAL for a multicast destination, EPROTONOSUPPORT for a
/// header that is neither IPv4 nor IPv6, ENOENT or EINVAL if the destination is not in the port's
/// GID table.
[[nodiscard]] inline result<ibv_ah_attr> init_ah_from_wc(ref<ibv_context> context, int port,
                                                         const ibv_wc& completion,
                                                         const ibv_grh* grh) noexcept {
  constexpr verb call = verb::init_ah_from_wc;
  if (!context.get()) return detail::null_argument(call, "context");
  if (auto valid = detail::check_reply(call, context.get(), completion, grh, port); !valid)
    return failure(valid.error());
  ibv_wc copy = completion;
  detail::grh_argument header(grh);
  ibv_ah_attr attributes{};
  errno = 0;
  if (::ibv_init_ah_from_wc(context.get(), static_cast<std::uint8_t>(port), &copy, header.get(),
                            &attributes) == 0) [[likely]]
    return attributes;
  return failure(error(call, errno).on(context.get()).explain("port %d", port));
}

/// Creates an address handle for a reply: init_ah_from_wc and create_ah in one call.
[[nodiscard]] inline result<unique_ah> create_ah_from_wc(ref<ibv_pd> pd, const ibv_wc& completion,
                                                         const ibv_grh* grh, int port) noexcept {
  constexpr verb call = verb::create_ah_from_wc;
  if (!pd.get()) return detail::null_argument(call, "pd");
  if (auto valid = detail::check_reply(call, pd->context, completion, grh, port); !valid)
    return failure(valid.error());
  ibv_wc copy = completion;
  detail::grh_argument header(grh);
  auto ah = detail::obtain<unique_ah>(call, pd->context, [&]() noexcept {
    return ::ibv_create_ah_from_wc(pd.get(), &copy, header.get(), static_cast<std::uint8_t>(port));
  });
  if (!ah) ah.error().explain("port %d", port);
  return ah;
}

/// The Ethernet address of a RoCE destination.
struct eth_l2 {
  std::array<std::uint8_t, ETHERNET_LL_SIZE> mac{};
  std::uint16_t vlan = 0xffff;  ///< 0xffff: none
};

/// Resolves the MAC address and the VLAN of `address` with the kernel's neighbour table. It may
/// wait for a reply from the network, at most 3 seconds (rdma-core 44). Errors: EHOSTUNREACH
/// without a reply, EINVAL if the source GID belongs to no network device.
[[nodiscard]] inline result<eth_l2> resolve_eth_l2_from_gid(ref<ibv_context> context,
                                                            ibv_ah_attr address) noexcept {
  constexpr verb call = verb::resolve_eth_l2_from_gid;
  if (!context.get()) return detail::null_argument(call, "context");
  eth_l2 answer;
  errno = 0;
  const int code =
      ::ibv_resolve_eth_l2_from_gid(context.get(), &address, answer.mac.data(), &answer.vlan);
  if (code == 0) [[likely]]
    return answer;
  // Two conventions in one call (rdma-core 44): -1 with errno from the first steps, a negated errno
  // from the later ones.
  error e(call, code == -1 ? errno : code);
  e.on(context.get());
  detail::explain_address(e, context.get(), address);
  return failure(e);
}

/// Detaches a queue pair from a multicast group: needed only after multicast_membership::release().
[[nodiscard]] inline result<void> detach_mcast(ref<ibv_qp> qp, const ibv_gid& gid,
                                               std::uint16_t lid) noexcept {
  if (!qp.get()) return detail::null_argument(verb::detach_mcast, "qp");
  auto done =
      detail::check(verb::detach_mcast, ::ibv_detach_mcast(qp.get(), &gid, lid), qp->context);
  if (!done) done.error().explain("QP 0x%x, lid 0x%x", qp->qp_num, unsigned{lid});
  return done;
}

/// A queue pair's membership in a multicast group. The destructor detaches the queue pair. It does
/// not own the queue pair, which must outlive it: the kernel refuses to destroy a queue pair that
/// is attached (EBUSY). Not synchronised: one thread at a time.
class [[nodiscard]] multicast_membership {
 public:
  multicast_membership() noexcept = default;
  /// Adopts a membership that has no other owner.
  explicit multicast_membership(ibv_qp* qp, const ibv_gid& gid, std::uint16_t lid) noexcept
      : qp_(qp), gid_(gid), lid_(lid) {}
  multicast_membership(multicast_membership&& other) noexcept
      : qp_(other.release()), gid_(other.gid_), lid_(other.lid_) {}
  /// Detaches the present membership, then takes the other's. A failed detach is passed to the
  /// teardown handler.
  multicast_membership& operator=(multicast_membership&& other) noexcept {
    if (this != &other) {
      detach_or_report();
      gid_ = other.gid_;
      lid_ = other.lid_;
      qp_ = other.release();
    }
    return *this;
  }
  multicast_membership(const multicast_membership&) = delete;
  multicast_membership& operator=(const multicast_membership&) = delete;
  /// Detaches. Never throws, keeps errno, and passes a failed detach to the teardown handler.
  ~multicast_membership() { detach_or_report(); }

  /// Detaches. After a failure the membership is still owned, and the call can be repeated. An
  /// empty membership succeeds.
  [[nodiscard]] result<void> reset() noexcept {
    if (qp_) {
      if (auto done = detach_mcast(qp_, gid_, lid_); !done) [[unlikely]]
        return done;
      qp_ = nullptr;
    }
    return {};
  }

  /// Gives the membership up without detaching; the caller must detach it then (detach_mcast).
  [[nodiscard]] ibv_qp* release() noexcept { return std::exchange(qp_, nullptr); }

  /// The queue pair, or null.
  [[nodiscard]] ibv_qp* get() const noexcept { return qp_; }
  [[nodiscard]] explicit operator bool() const noexcept { return qp_ != nullptr; }
  [[nodiscard]] const ibv_gid& gid() const noexcept { return gid_; }
  [[nodiscard]] std::uint16_t lid() const noexcept { return lid_; }

  void swap(multicast_membership& other) noexcept {
    std::swap(qp_, other.qp_);
    std::swap(gid_, other.gid_);
    std::swap(lid_, other.lid_);
  }
  friend void swap(multicast_membership& a, multicast_membership& b) noexcept { a.swap(b); }

 private:
  void detach_or_report() noexcept {
    if (!qp_) return;
    const int saved = errno;
    if (auto done = detach_mcast(qp_, gid_, lid_); !done) [[unlikely]]
      detail::report_teardown(done.error());
    errno = saved;
  }

  ibv_qp* qp_ = nullptr;
  ibv_gid gid_{};
  std::uint16_t lid_ = 0;
};

/// Attaches a UD queue pair to a multicast group. On InfiniBand the program must also join the
/// group at the subnet administrator (manual page of ibv_attach_mcast). `lid` is in host byte
/// order; 0 on RoCE. EINVAL for another type of queue pair, and for a GID that is not a multicast
/// GID.
[[nodiscard]] inline result<multicast_membership> attach_mcast(ref<ibv_qp> qp, const ibv_gid& gid,
                                                               std::uint16_t lid) noexcept {
  constexpr verb call = verb::attach_mcast;
  if (!qp.get()) return detail::null_argument(call, "qp");
  const int code = ::ibv_attach_mcast(qp.get(), &gid, lid);
  if (code == 0) [[likely]]
    return multicast_membership(qp.get(), gid, lid);
  error e(call, code);
  e.on(qp->context).explain("QP 0x%x, lid 0x%x", qp->qp_num, unsigned{lid});
  if (gid.raw[0] != 0xff) e.explain("; the GID is not a multicast GID");
  return failure(e);
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
