#include "device/flow.hpp"

// Soft-RoCE has no flows. The checks are those of the kernel's uverbs code and of mlx5. No packet
// is steered or counted.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "device/object.hpp"
#include "device/queue_pair.hpp"

namespace ibvxx::shim {
namespace {

/// Collects the objects that a flow's specifications name, which must outlive the flow. False for a
/// list whose sizes do not add up, or that names no live object.
[[nodiscard]] bool read_specs(call& c, const ibv_flow_attr& flow, std::vector<record*>& named) {
  const auto* next = reinterpret_cast<const std::byte*>(&flow) + sizeof flow;
  std::size_t left = flow.size >= sizeof flow ? flow.size - sizeof flow : 0;
  if (flow.size < sizeof flow) return flow.num_of_specs == 0;
  for (unsigned i = 0; i < flow.num_of_specs; ++i) {
    struct {
      ibv_flow_spec_type type;
      std::uint16_t size;
    } head{};
    if (left < sizeof head) return false;
    std::memcpy(&head, next, sizeof head);
    if (head.size < sizeof head || head.size > left) return false;
    if (head.type == IBV_FLOW_SPEC_ACTION_HANDLE) {
      ibv_flow_spec_action_handle spec{};
      if (head.size < sizeof spec) return false;
      std::memcpy(&spec, next, sizeof spec);
      if (!c.use<sim_flow_action>(spec.action)) return false;
      named.push_back(c.record_of(spec.action));
    } else if (head.type == IBV_FLOW_SPEC_ACTION_COUNT) {
      ibv_flow_spec_counter_action spec{};
      if (head.size < sizeof spec) return false;
      std::memcpy(&spec, next, sizeof spec);
      if (!c.use<sim_counters>(spec.counters)) return false;
      named.push_back(c.record_of(spec.counters));
    }
    next += head.size;
    left -= head.size;
  }
  return true;
}

}  // namespace

namespace device {

ibv_flow* create_flow(call& c, ibv_qp* qp, ibv_flow_attr* a) {
  auto* target = c.use<sim_qp>(qp);
  if (!target || c.failing() || !c.given(a, "flow_attr")) return c.refuse_pointer();
  sim_context& context = *target->context;
  if (!context.offers().flows) return c.refuse_pointer(EOPNOTSUPP);
  if (a->comp_mask != 0 || a->type > IBV_FLOW_ATTR_SNIFFER || !find_port(*context.device, a->port))
    return c.refuse_pointer();
  // ib_uverbs_ex_create_flow: packets are steered to UD and RAW_PACKET only.
  if (qp->qp_type != IBV_QPT_UD && qp->qp_type != IBV_QPT_RAW_PACKET) return c.refuse_pointer();
  std::vector<record*> parents{c.record_of(qp)};
  if (!read_specs(c, *a, parents)) return c.refuse_pointer();
  auto made = std::make_shared<sim_flow>();
  made->context = &context;
  made->verbs.context = qp->context;
  made->verbs.handle = handle_of(c);
  record_object(c, made, &made->verbs, *context.device, std::span<record* const>(parents));
  return &made->verbs;
}

int destroy_flow(call& c, ibv_flow* flow) {
  return c.ending<sim_flow>(flow) ? c.concluded(c.destroy(flow)) : c.refuse_code();
}

ibv_flow_action* create_flow_action_esp(call& c, ibv_context* context,
                                        ibv_flow_action_esp_attr* a) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(a, "attr")) return c.refuse_pointer();
  if (!owner->offers().flow_actions) return c.refuse_pointer(EOPNOTSUPP);
  if (!a->esp_attr || (a->comp_mask & ~unsigned{IBV_FLOW_ACTION_ESP_MASK_ESN}) != 0)
    return c.refuse_pointer();
  auto made = std::make_shared<sim_flow_action>();
  made->context = owner;
  made->verbs.context = context;
  record_object(c, made, &made->verbs, *owner->device, {c.record_of(context)});
  return &made->verbs;
}

int modify_flow_action_esp(call& c, ibv_flow_action* action, ibv_flow_action_esp_attr* a) {
  auto* changed = c.use<sim_flow_action>(action);
  if (!changed || c.failing() || !c.given(a, "attr")) return c.refuse_code();
  return (a->comp_mask & ~unsigned{IBV_FLOW_ACTION_ESP_MASK_ESN}) != 0 ? EINVAL : 0;
}

int destroy_flow_action(call& c, ibv_flow_action* action) {
  return c.ending<sim_flow_action>(action) ? c.concluded(c.destroy(action)) : c.refuse_code();
}

ibv_counters* create_counters(call& c, ibv_context* context, ibv_counters_init_attr* a) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (!owner->offers().counters || (a && a->comp_mask != 0)) return c.refuse_pointer(EOPNOTSUPP);
  auto made = std::make_shared<sim_counters>();
  made->context = owner;
  made->verbs.context = context;
  record_object(c, made, &made->verbs, *owner->device, {c.record_of(context)});
  return &made->verbs;
}

// mlx5 (rdma-core 44, providers/mlx5/verbs.c): a set that a flow uses takes no further counter
// (EBUSY), and a counter of an existing flow is not supported (ENOTSUP).
int attach_counters_point_flow(call& c, ibv_counters* counters, ibv_counter_attach_attr* a,
                               ibv_flow* flow) {
  auto* set = c.use<sim_counters>(counters);
  if (!set || (flow && !c.use<sim_flow>(flow)) || c.failing() || !c.given(a, "attr"))
    return c.refuse_code();
  if (flow || a->comp_mask != 0) return ENOTSUP;
  if (a->counter_desc != IBV_COUNTER_PACKETS && a->counter_desc != IBV_COUNTER_BYTES)
    return ENOTSUP;
  if (c.record_of(counters)->children != 0) return EBUSY;
  set->meanings[a->index] = a->counter_desc;
  return 0;
}

int read_counters(call& c, ibv_counters* counters, std::uint64_t* values, std::uint32_t count,
                  std::uint32_t flags) {
  auto* set = c.use<sim_counters>(counters);
  if (!set || c.failing() || (count != 0 && !c.given(values, "counters_value")))
    return c.refuse_code();
  if ((flags & ~std::uint32_t{IBV_READ_COUNTERS_ATTR_PREFER_CACHED}) != 0) return EINVAL;
  std::fill_n(values, count, std::uint64_t{0});
  return 0;
}

int destroy_counters(call& c, ibv_counters* counters) {
  return c.ending<sim_counters>(counters) ? c.concluded(c.destroy(counters)) : c.refuse_code();
}

}  // namespace device
}  // namespace ibvxx::shim
