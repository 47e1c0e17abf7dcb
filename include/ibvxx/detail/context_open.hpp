// Opens the resources of a context: all of them, or none.
#pragma once

#include <cstddef>
#include <ibvxx/context_config.hpp>
#include <ibvxx/detail/context_resources.hpp>
#include <ibvxx/gid_policy.hpp>
#include <utility>
#include <vector>

namespace ibvxx::detail::inline IBVXX_RESULT_KIND {

/// Facts found while opening. Plain values: they own nothing.
struct context_facts {
  ibv_device_attr device{};
  ibv_port_attr port{};
  int port_number = 0;
  gid_candidate gid{};
};

struct opened_context {
  context_resources resources{};
  context_facts facts{};
};

/// Sets the port: the configured one, which must be active; else the first active one; else the
/// first.
[[nodiscard]] inline result<void> choose_port(const context_config& config,
                                              const unique_context& device,
                                              context_facts& facts) noexcept {
  const int count = facts.device.phys_port_cnt;
  if (config.port > count)
    return failure(error(verb::query_port, EINVAL)
                       .on(device.get())
                       .explain("context_config.port %d is above the device's port count of %d",
                                config.port, count));
  if (count == 0)
    return failure(
        error(verb::query_port, ENODEV).on(device.get()).explain("the device has no port"));
  for (int number = config.port != 0 ? config.port : 1; number <= count; ++number) {
    auto port = query_port(device, number);
    if (!port) return failure(port.error());
    if (facts.port_number == 0 || port->state == IBV_PORT_ACTIVE) {
      facts.port = *port;
      facts.port_number = number;
    }
    if (port->state == IBV_PORT_ACTIVE) return {};
    if (config.port != 0)
      return failure(error(verb::query_port, ENETDOWN)
                         .on(device.get())
                         .explain("port %d is %s (%d), not ACTIVE", number,
                                  detail::port_state_name(port->state), port->state));
  }
  return {};
}

/// Opens a device, queries it and chooses its port.
[[nodiscard]] inline result<void> open_with_port(const context_config& config, ibv_device* device,
                                                 opened_context& out) noexcept {
  auto context = open_device(device);
  if (!context) return failure(context.error());
  out.resources.device = std::move(*context);
  auto attributes = query_device(out.resources.device);
  if (!attributes) return failure(attributes.error());
  out.facts.device = *attributes;
  return choose_port(config, out.resources.device, out.facts);
}

/// Opens the device of the configured name, or else the first device with a suitable port. A search
/// skips each device that fails, and returns the first error if no device is suitable.
[[nodiscard]] inline result<void> open_configured_device(const context_config& config,
                                                         opened_context& out) noexcept {
  auto list = get_device_list();
  if (!list) return failure(list.error());
  if (!config.device_name.empty()) {
    if (ibv_device* device = list->find(config.device_name))
      return open_with_port(config, device, out);
    error e(verb::get_device_list, ENODEV);
    e.explain("context_config.device_name '%.64s' is none of the %zu device(s)",
              config.device_name.c_str(), list->size());
    for (std::size_t i = 0; i < list->size(); ++i)
      e.explain("%s%.32s", i == 0 ? ": " : ", ", (*list)[i]->name);
    return failure(e);
  }
  result<void> outcome =
      failure(error(verb::get_device_list, ENODEV).explain("this machine has no RDMA device"));
  bool first = true;
  for (ibv_device* device : *list) {
    opened_context candidate;
    auto opened = open_with_port(config, device, candidate);
    if (opened && candidate.facts.port.state != IBV_PORT_ACTIVE)
      opened =
          failure(error(verb::query_port, ENETDOWN).on(device->name).explain("no port is ACTIVE"));
    if (opened) {
      out = std::move(candidate);
      return {};
    }
    if (std::exchange(first, false)) outcome = opened;
  }
  return outcome;
}

/// Reads every GID of the device. Allocates.
[[nodiscard]] inline result<std::vector<ibv_gid_entry>> read_gid_table(const unique_context& device,
                                                                       const context_facts& facts) {
  // The verb returns the GIDs of all ports, and fails if the array is too small. So the other ports
  // are queried for the size of their tables.
  std::size_t room = 0;
  for (int number = 1; number <= facts.device.phys_port_cnt; ++number) {
    if (number == facts.port_number) {
      room += static_cast<std::size_t>(facts.port.gid_tbl_len);
      continue;
    }
    auto port = query_port(device, number);
    if (!port) return failure(port.error());
    room += static_cast<std::size_t>(port->gid_tbl_len);
  }
  return every_gid(device, room);
}

/// Chooses the GID by the configured policy, or takes the one of the configured index; its reason
/// then includes the reason of the policy. Allocates.
[[nodiscard]] inline result<gid_candidate> choose_configured_gid(const context_config& config,
                                                                 const unique_context& device,
                                                                 const context_facts& facts) {
  if (config.gid_index >= facts.port.gid_tbl_len)
    return failure(
        error(verb::query_gid_table, EINVAL)
            .on(device.get())
            .explain("context_config.gid_index %d is outside the table of port %d: 0..%d",
                     config.gid_index, facts.port_number, facts.port.gid_tbl_len - 1));
  auto entries = read_gid_table(device, facts);
  if (!entries) return failure(entries.error());
  const bool infiniband = facts.port.link_layer == IBV_LINK_LAYER_INFINIBAND;
  if (config.gid_index < 0) {
    auto chosen = choose_gid(*entries, facts.port_number, infiniband, config.gids);
    if (!chosen) return failure(chosen.error().on(device.get()));
    return chosen;
  }
  auto ranked = rank_gids(*entries, facts.port_number, infiniband, config.gids);
  if (!ranked) return failure(ranked.error());
  for (gid_candidate& candidate : *ranked) {
    if (candidate.entry.gid_index != static_cast<std::uint32_t>(config.gid_index)) continue;
    const auto verdict = candidate.reason;
    candidate.reason = fixed_text<88>("configured by index; ");
    candidate.reason.append(verdict);
    return candidate;
  }
  return failure(error(verb::query_gid_table, ENODATA)
                     .on(device.get())
                     .explain("context_config.gid_index %d of port %d is an empty slot",
                              config.gid_index, facts.port_number));
}

/// Creates the completion channels. They and the event descriptor of the device are made
/// non-blocking and registered with the epoll descriptor; each registration has the descriptor as
/// its data.
[[nodiscard]] inline result<void> create_channels(const context_config& config,
                                                  context_resources& out) {
  const auto watch = [&out](int fd) -> result<void> {
    if (auto done = set_nonblocking(fd); !done) return done;
    return epoll_add(out.epoll.get(), fd, EPOLLIN, static_cast<std::uint64_t>(fd));
  };
  if (auto watched = watch(out.device->async_fd); !watched) return watched;
  out.channels.reserve(static_cast<std::size_t>(config.comp_channels));
  for (int i = 0; i < config.comp_channels; ++i) {
    auto channel = create_comp_channel(out.device);
    if (!channel) return failure(channel.error());
    out.channels.push_back(std::move(*channel));
    if (auto watched = watch(out.channels.back()->fd); !watched) return watched;
  }
  return {};
}

/// Creates the completion queues, over the channels and the completion vectors in turn, and arms
/// each that has a channel.
[[nodiscard]] inline result<void> create_cqs(const context_config& config,
                                             const context_facts& facts, context_resources& out) {
  const auto refuse = [&out](const char* field, int value, int limit) {
    return failure(error(verb::create_cq, EINVAL)
                       .on(out.device.get())
                       .explain("context_config.%s %d is above the device's limit of %d", field,
                                value, limit));
  };
  int cqe = config.cqe;
  if (cqe > facts.device.max_cqe) {
    if (!config.clamp_cqe) return refuse("cqe", cqe, facts.device.max_cqe);
    cqe = facts.device.max_cqe;
  }
  const int extra = config.notification_cq ? 1 : 0;
  if (config.cqs > facts.device.max_cq - extra)
    return refuse("cqs", config.cqs, facts.device.max_cq - extra);
  const int vectors = out.device->num_comp_vectors > 0 ? out.device->num_comp_vectors : 1;

  out.cqs.reserve(static_cast<std::size_t>(config.cqs));
  for (int i = 0; i < config.cqs; ++i) {
    ibv_comp_channel* channel = nullptr;
    if (!out.channels.empty())
      channel = out.channels[static_cast<std::size_t>(i) % out.channels.size()].get();
    auto cq = create_cq(out.device, cqe, channel, i % vectors);
    if (!cq) return failure(cq.error());
    out.cqs.push_back(std::move(*cq));
  }
  if (config.notification_cq) {
    auto cq =
        create_cq(out.device, cqe, out.channels.empty() ? nullptr : out.channels.front().get(),
                  config.cqs % vectors);
    if (!cq) return failure(cq.error());
    out.notification_cq = std::move(*cq);
  }
  if (out.channels.empty()) return {};
  for (const unique_cq& cq : out.cqs)
    if (auto armed = req_notify_cq(cq); !armed) return armed;
  return out.notification_cq ? req_notify_cq(out.notification_cq) : result<void>();
}

/// Opens everything that `config` describes. After a failure nothing is left open. Allocates, so it
/// may throw bad_alloc.
[[nodiscard]] inline result<opened_context> open_resources(const context_config& config) {
  if (auto valid = validate(config); !valid) return failure(valid.error());
  opened_context opened;
  context_resources& resources = opened.resources;
  context_facts& facts = opened.facts;

  if (auto done = open_configured_device(config, opened); !done) return failure(done.error());
  auto gid = choose_configured_gid(config, resources.device, facts);
  if (!gid) return failure(gid.error());
  facts.gid = *gid;

  auto pd = alloc_pd(resources.device);
  if (!pd) return failure(pd.error());
  resources.pd = std::move(*pd);
  auto epoll = epoll_create();
  if (!epoll) return failure(epoll.error());
  resources.epoll = std::move(*epoll);
  if (auto done = create_channels(config, resources); !done) return failure(done.error());
  if (auto done = create_cqs(config, facts, resources); !done) return failure(done.error());

  // The port may have changed since it was queried, and its event may have been raised before the
  // event descriptor was watched.
  auto port = query_port(resources.device, facts.port_number);
  if (!port) return failure(port.error());
  facts.port = *port;
  return opened;
}

}  // namespace ibvxx::detail::inline IBVXX_RESULT_KIND
