// Flow steering rules, flow actions, and flow counters.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ibvxx/detail/checks.hpp>
#include <ibvxx/handle.hpp>
#include <span>

namespace ibvxx::inline IBVXX_RESULT_KIND {

struct flow_deleter : object_deleter<flow_deleter, ibv_flow, verb::destroy_flow> {
  static constexpr const char* users = "the hardware";
  [[nodiscard]] static int destroy(ibv_flow* flow) noexcept { return ::ibv_destroy_flow(flow); }
};
/// A steering rule: packets that match it are delivered to its queue pair. Destroy it before the
/// queue pair, and before the actions and counters that it names.
using unique_flow = unique_handle<ibv_flow*, flow_deleter>;

struct flow_action_deleter
    : object_deleter<flow_action_deleter, ibv_flow_action, verb::destroy_flow_action> {
  static constexpr const char* users = "a flow";
  [[nodiscard]] static int destroy(ibv_flow_action* action) noexcept {
    return ::ibv_destroy_flow_action(action);
  }
};
/// An action on the packets of every flow that names it.
using unique_flow_action = unique_handle<ibv_flow_action*, flow_action_deleter>;

struct counters_deleter : object_deleter<counters_deleter, ibv_counters, verb::destroy_counters> {
  static constexpr const char* users = "a flow";
  [[nodiscard]] static int destroy(ibv_counters* counters) noexcept {
    return ::ibv_destroy_counters(counters);
  }
};
/// A set of counters. Destroy the flows that use it first: EBUSY otherwise.
using unique_counters = unique_handle<ibv_counters*, counters_deleter>;

/// Creates a steering rule to `qp`. `attributes` is the head of one block of memory, in which
/// `num_of_specs` specifications (ibv_flow_spec_*) follow, each as long as its own `size`. The
/// block is only read. Ports count from 1. Errors: EINVAL for an invalid rule, EPERM without
/// CAP_NET_RAW, EOPNOTSUPP from most providers.
[[nodiscard]] inline result<unique_flow> create_flow(ref<ibv_qp> qp,
                                                     ibv_flow_attr& attributes) noexcept {
  constexpr verb call = verb::create_flow;
  if (!qp.get()) return detail::null_argument(call, "qp");
  auto flow = detail::obtain<unique_flow>(
      call, qp->context, [&]() noexcept { return ::ibv_create_flow(qp.get(), &attributes); });
  if (!flow)
    flow.error().explain("type %d, size %u, %u spec(s), priority %u, port %u, flags 0x%x",
                         static_cast<int>(attributes.type), unsigned{attributes.size},
                         unsigned{attributes.num_of_specs}, unsigned{attributes.priority},
                         unsigned{attributes.port}, attributes.flags);
  return flow;
}

/// Creates an action that encrypts or decrypts IPsec ESP packets. What `attributes` points to is
/// read during the call only. A flow names the action in an ibv_flow_spec_action_handle.
[[nodiscard]] inline result<unique_flow_action> create_flow_action_esp(
    ref<ibv_context> context, ibv_flow_action_esp_attr attributes) noexcept {
  constexpr verb call = verb::create_flow_action_esp;
  if (!context.get()) return detail::null_argument(call, "context");
  if (!attributes.esp_attr)
    return detail::null_argument(call, context.get(), "attributes.esp_attr");
  if (!attributes.keymat_ptr && attributes.keymat_len != 0)
    return detail::null_argument(call, context.get(), "attributes.keymat_ptr");
  if (!attributes.replay_ptr && attributes.replay_len != 0)
    return detail::null_argument(call, context.get(), "attributes.replay_ptr");
  auto action = detail::obtain<unique_flow_action>(call, context.get(), [&]() noexcept {
    return ::ibv_create_flow_action_esp(context.get(), &attributes);
  });
  if (!action)
    action.error().explain("keymat_proto %d, keymat_len %u",
                           static_cast<int>(attributes.keymat_proto),
                           unsigned{attributes.keymat_len});
  return action;
}

/// Changes the action in all its flows at once. A null pointer in `attributes` leaves that part
/// unchanged.
[[nodiscard]] inline result<void> modify_flow_action_esp(
    ref<ibv_flow_action> action, ibv_flow_action_esp_attr attributes) noexcept {
  constexpr verb call = verb::modify_flow_action_esp;
  if (!action.get()) return detail::null_argument(call, "action");
  return detail::check(call, ::ibv_modify_flow_action_esp(action.get(), &attributes),
                       action->context);
}

/// Creates a set of counters, all 0. They count once a flow names the set
/// (ibv_flow_spec_counter_action) or is attached to it.
[[nodiscard]] inline result<unique_counters> create_counters(
    ref<ibv_context> context, ibv_counters_init_attr attributes = {}) noexcept {
  if (!context.get()) return detail::null_argument(verb::create_counters, "context");
  return detail::obtain<unique_counters>(verb::create_counters, context.get(), [&]() noexcept {
    return ::ibv_create_counters(context.get(), &attributes);
  });
}

/// Selects what the counter at `attributes.index` counts: in `flow`, or, if that is null, in the
/// flows created with the set later. Errors: ENOTSUP for a counter that such a flow does not have,
/// EBUSY for a null `flow` once the set is in use.
[[nodiscard]] inline result<void> attach_counters_point_flow(ref<ibv_counters> counters,
                                                             ibv_counter_attach_attr attributes,
                                                             ibv_flow* flow = nullptr) noexcept {
  constexpr verb call = verb::attach_counters_point_flow;
  if (!counters.get()) return detail::null_argument(call, "counters");
  auto done = detail::check(
      call, ::ibv_attach_counters_point_flow(counters.get(), &attributes, flow), counters->context);
  if (!done)
    done.error().explain("counter_desc %d, index %u", static_cast<int>(attributes.counter_desc),
                         attributes.index);
  return done;
}

/// Reads the first `values.size()` counters into `values`. With
/// IBV_READ_COUNTERS_ATTR_PREFER_CACHED in `flags` the driver may return cached values.
[[nodiscard]] inline result<void> read_counters(ref<ibv_counters> counters,
                                                std::span<std::uint64_t> values,
                                                std::uint32_t flags = 0) noexcept {
  constexpr verb call = verb::read_counters;
  if (!counters.get()) return detail::null_argument(call, "counters");
  if (auto valid = detail::check_count(call, counters->context, "values", values.size()); !valid)
    return valid;
  auto done = detail::check(call,
                            ::ibv_read_counters(counters.get(), values.data(),
                                                static_cast<std::uint32_t>(values.size()), flags),
                            counters->context);
  if (!done) done.error().explain("%zu value(s), flags 0x%x", values.size(), flags);
  return done;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
