// How to make an object of each owner type of the toolkit, with what it needs around it.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/shim.hpp>
#include <tuple>
#include <utility>

namespace ibvxx::test {

/// A machine whose one device offers every object.
inline shim::simulated full_machine() {
  return {{shim::device_description::hardware()}};
}

template <class Owner>
result<void> assign(Owner& to, result<Owner> made) {
  if (!made) return failure(made.error());
  to = std::move(*made);
  return {};
}

inline result<unique_context> open_only_device() {
  auto list = get_device_list();
  if (!list) return failure(list.error());
  return open_device((*list)[0]);
}

// What stands around the object under test. owners() lists it in the order of construction, each
// with the places in that list of what it was made from.

template <class Owner>
struct node {
  Owner& owner;
  unsigned made_from;  // bits
};

template <class Owner, class... Places>
node<Owner> from(Owner& owner, Places... places) {
  return {owner, (0U | ... | (1U << places))};
}

struct nothing_around {
  [[nodiscard]] result<void> prepare() { return {}; }
  [[nodiscard]] auto owners() { return std::tuple<>(); }
};

struct context_around {
  unique_context context{};
  [[nodiscard]] result<void> prepare() { return assign(context, open_only_device()); }
  [[nodiscard]] auto owners() { return std::tuple(from(context)); }
};

struct pd_around : context_around {
  unique_pd pd{};
  [[nodiscard]] result<void> prepare() {
    if (auto step = context_around::prepare(); !step) return step;
    return assign(pd, alloc_pd(context));
  }
  [[nodiscard]] auto owners() { return std::tuple(from(context), from(pd, 0)); }
};

struct cq_around : pd_around {
  unique_cq cq{};
  [[nodiscard]] result<void> prepare() {
    if (auto step = pd_around::prepare(); !step) return step;
    return assign(cq, create_cq(context, 16));
  }
  [[nodiscard]] ibv_qp_init_attr qp_attributes(ibv_qp_type type) const {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = cq.get();
    attributes.cap = {4, 4, 1, 1, 0};
    attributes.qp_type = type;
    return attributes;
  }
  [[nodiscard]] ibv_wq_init_attr wq_attributes() const {
    ibv_wq_init_attr attributes{};
    attributes.pd = pd.get();
    attributes.cq = cq.get();
    attributes.max_wr = 4;
    attributes.max_sge = 1;
    return attributes;
  }
  [[nodiscard]] auto owners() { return std::tuple(from(context), from(pd, 0), from(cq, 0)); }
};

struct ud_qp_around : cq_around {
  unique_qp qp{};
  [[nodiscard]] result<void> prepare() {
    if (auto step = cq_around::prepare(); !step) return step;
    auto attributes = qp_attributes(IBV_QPT_UD);
    return assign(qp, create_qp(pd, attributes));
  }
  [[nodiscard]] auto owners() {
    return std::tuple(from(context), from(pd, 0), from(cq, 0), from(qp, 1, 2));
  }
};

struct wq_around : cq_around {
  unique_wq wq{};
  [[nodiscard]] result<void> prepare() {
    if (auto step = cq_around::prepare(); !step) return step;
    auto attributes = wq_attributes();
    return assign(wq, create_wq(context, attributes));
  }
  [[nodiscard]] auto owners() {
    return std::tuple(from(context), from(pd, 0), from(cq, 0), from(wq, 1, 2));
  }
};

/// A second context on the same device, as another process would have it.
struct import_around : pd_around {
  unique_context importer{};
  [[nodiscard]] result<void> prepare() {
    if (auto step = pd_around::prepare(); !step) return step;
    const int fd = ::dup(context->cmd_fd);
    auto imported = import_device(fd);
    if (!imported) ::close(fd);
    return assign(importer, std::move(imported));
  }
  [[nodiscard]] auto owners() { return std::tuple(from(context), from(pd, 0), from(importer)); }
};

struct mr_import_around : import_around {
  alignas(64) std::byte memory[64] = {};
  unique_mr mr{};
  unique_imported_pd imported_pd{};
  [[nodiscard]] result<void> prepare() {
    if (auto step = import_around::prepare(); !step) return step;
    if (auto step = assign(mr, reg_mr(pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE)); !step)
      return step;
    return assign(imported_pd, import_pd(importer, pd->handle));
  }
  [[nodiscard]] auto owners() {
    return std::tuple(from(context), from(pd, 0), from(importer), from(mr, 1),
                      from(imported_pd, 2));
  }
};

struct dm_import_around : import_around {
  unique_dm dm{};
  [[nodiscard]] result<void> prepare() {
    if (auto step = import_around::prepare(); !step) return step;
    return assign(dm, alloc_dm(context, {64, 0, 0}));
  }
  [[nodiscard]] auto owners() {
    return std::tuple(from(context), from(pd, 0), from(importer), from(dm, 0));
  }
};

/// Takes everything down, the youngest first. What fails to go is given up, and so is what it was
/// made from: destroying a parent then would be wrong. Returns the first error.
template <class... Owners>
result<void> dismantle(std::tuple<node<Owners>...> nodes, bool keep_all = false) {
  result<void> outcome;
  unsigned kept = keep_all ? ~0U : 0U;
  const auto one = [&](std::size_t place, auto& n) {
    if ((kept >> place & 1U) == 0) {
      auto gone = n.owner.reset();
      if (gone) return;
      if (outcome) outcome = gone;
    }
    kept |= n.made_from;
    static_cast<void>(n.owner.release());
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one(sizeof...(I) - 1 - I, std::get<sizeof...(I) - 1 - I>(nodes)), ...);
  }
  (std::index_sequence_for<Owners...>());
  return outcome;
}

/// What the test needs to know of an owner type. `may_fail`: its destroy can fail, and the object
/// then stays; `gone_after_failure`: it can fail, but the object is gone all the same.
template <class Owner, class Around, shim::object_kind Kind, verb End, bool MayFail = true>
struct recipe {
  using owner = Owner;
  using around = Around;
  static constexpr shim::object_kind kind = Kind;
  static constexpr verb end = End;
  static constexpr bool may_fail = MayFail;
  static constexpr bool gone_after_failure = false;
};

using shim::object_kind;

struct context_recipe
    : recipe<unique_context, nothing_around, object_kind::context, verb::close_device, false> {
  static auto make(nothing_around&) { return open_only_device(); }
};
struct device_list_recipe
    : recipe<device_list, nothing_around, object_kind::device_list, verb::free_device_list, false> {
  static auto make(nothing_around&) { return get_device_list(); }
};
struct fd_recipe : recipe<unique_fd, nothing_around, object_kind::descriptor, verb::close, false> {
  static constexpr bool gone_after_failure = true;
  static auto make(nothing_around&) { return epoll_create(); }
};
struct pd_recipe : recipe<unique_pd, context_around, object_kind::pd, verb::dealloc_pd> {
  static auto make(around& a) { return alloc_pd(a.context); }
};
struct parent_domain_recipe : recipe<unique_pd, pd_around, object_kind::pd, verb::dealloc_pd> {
  static auto make(around& a) {
    return alloc_parent_domain(a.context, {a.pd.get(), nullptr, 0, nullptr, nullptr, nullptr});
  }
};
struct td_recipe : recipe<unique_td, context_around, object_kind::td, verb::dealloc_td> {
  static auto make(around& a) { return alloc_td(a.context); }
};
struct xrcd_recipe : recipe<unique_xrcd, context_around, object_kind::xrcd, verb::close_xrcd> {
  static auto make(around& a) {
    return open_xrcd(a.context, {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT});
  }
};
struct mr_recipe : recipe<unique_mr, pd_around, object_kind::mr, verb::dereg_mr> {
  static auto make(around& a) {
    alignas(64) static std::byte memory[64];
    return reg_mr(a.pd, std::span(memory), IBV_ACCESS_LOCAL_WRITE);
  }
};
struct mw_recipe : recipe<unique_mw, pd_around, object_kind::mw, verb::dealloc_mw> {
  static auto make(around& a) { return alloc_mw(a.pd, IBV_MW_TYPE_2); }
};
struct dm_recipe : recipe<unique_dm, context_around, object_kind::dm, verb::free_dm> {
  static auto make(around& a) { return alloc_dm(a.context, {64, 0, 0}); }
};
struct channel_recipe : recipe<unique_comp_channel, context_around, object_kind::comp_channel,
                               verb::destroy_comp_channel> {
  static auto make(around& a) { return create_comp_channel(a.context); }
};
struct cq_recipe : recipe<unique_cq, context_around, object_kind::cq, verb::destroy_cq> {
  static auto make(around& a) { return create_cq(a.context, 16); }
};
struct cq_ex_recipe : recipe<unique_cq_ex, context_around, object_kind::cq, verb::destroy_cq> {
  static auto make(around& a) {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = 16;
    return create_cq_ex(a.context, attributes);
  }
};
struct qp_recipe : recipe<unique_qp, cq_around, object_kind::qp, verb::destroy_qp> {
  static auto make(around& a) {
    auto attributes = a.qp_attributes(IBV_QPT_RC);
    return create_qp(a.pd, attributes);
  }
};
struct srq_recipe : recipe<unique_srq, pd_around, object_kind::srq, verb::destroy_srq> {
  static auto make(around& a) {
    ibv_srq_init_attr attributes{nullptr, {4, 1, 0}};
    return create_srq(a.pd, attributes);
  }
};
struct ah_recipe : recipe<unique_ah, pd_around, object_kind::ah, verb::destroy_ah> {
  static inline const ibv_gid peer = shim::gid("::ffff:10.0.0.2");
  static auto make(around& a) {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;
    attributes.port_num = 1;
    attributes.grh.sgid_index = 1;
    attributes.grh.dgid = peer;
    return create_ah(a.pd, attributes);
  }
};
struct wq_recipe : recipe<unique_wq, cq_around, object_kind::wq, verb::destroy_wq> {
  static auto make(around& a) {
    auto attributes = a.wq_attributes();
    return create_wq(a.context, attributes);
  }
};
struct rwq_ind_table_recipe : recipe<unique_rwq_ind_table, wq_around, object_kind::rwq_ind_table,
                                     verb::destroy_rwq_ind_table> {
  static auto make(around& a) {
    ibv_wq* queues[] = {a.wq.get(), a.wq.get()};
    ibv_rwq_ind_table_init_attr attributes{};
    attributes.log_ind_tbl_size = 1;
    attributes.ind_tbl = queues;
    return create_rwq_ind_table(a.context, attributes);
  }
};
struct flow_recipe : recipe<unique_flow, ud_qp_around, object_kind::flow, verb::destroy_flow> {
  static auto make(around& a) {
    ibv_flow_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.port = 1;
    return create_flow(a.qp, attributes);
  }
};
struct flow_action_recipe : recipe<unique_flow_action, context_around, object_kind::flow_action,
                                   verb::destroy_flow_action> {
  static auto make(around& a) {
    ibv_flow_action_esp esp{};
    ibv_flow_action_esp_attr attributes{};
    attributes.esp_attr = &esp;
    return create_flow_action_esp(a.context, attributes);
  }
};
struct counters_recipe
    : recipe<unique_counters, context_around, object_kind::counters, verb::destroy_counters> {
  static auto make(around& a) { return create_counters(a.context); }
};
struct membership_recipe : recipe<multicast_membership, ud_qp_around,
                                  object_kind::multicast_membership, verb::detach_mcast> {
  static inline const ibv_gid any_group = shim::gid("ff0e::ffff:239.0.0.1");
  static auto make(around& a) {
    static std::uint8_t group = 0;  // each one another
    ibv_gid gid = any_group;
    gid.raw[14] = ++group;
    return attach_mcast(a.qp, gid, 0);
  }
};
struct imported_pd_recipe
    : recipe<unique_imported_pd, import_around, object_kind::pd, verb::unimport_pd, false> {
  static auto make(around& a) { return import_pd(a.importer, a.pd->handle); }
};
struct imported_mr_recipe
    : recipe<unique_imported_mr, mr_import_around, object_kind::mr, verb::unimport_mr, false> {
  static auto make(around& a) { return import_mr(a.imported_pd, a.mr->handle); }
};
struct imported_dm_recipe
    : recipe<unique_imported_dm, dm_import_around, object_kind::dm, verb::unimport_dm, false> {
  static auto make(around& a) { return import_dm(a.importer, a.dm->handle); }
};

using every_owner =
    std::tuple<context_recipe, device_list_recipe, fd_recipe, pd_recipe, parent_domain_recipe,
               td_recipe, xrcd_recipe, mr_recipe, mw_recipe, dm_recipe, channel_recipe, cq_recipe,
               cq_ex_recipe, qp_recipe, srq_recipe, ah_recipe, wq_recipe, rwq_ind_table_recipe,
               flow_recipe, flow_action_recipe, counters_recipe, membership_recipe,
               imported_pd_recipe, imported_mr_recipe, imported_dm_recipe>;

}  // namespace ibvxx::test
