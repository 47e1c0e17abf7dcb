// What a context owns: how it is built aside, complete or not at all, and how it is taken down.
#pragma once

#include <cstddef>
#include <ibvxx/completion.hpp>
#include <ibvxx/context_config.hpp>
#include <ibvxx/device.hpp>
#include <ibvxx/domain.hpp>
#include <ibvxx/fd.hpp>
#include <ibvxx/gid.hpp>
#include <ibvxx/teardown.hpp>
#include <vector>

namespace ibvxx::inline IBVXX_RESULT_KIND::impl {

/// The owners, in the order of construction: member destructors undo it in reverse. What a
/// half-built set of them has is what it releases; nothing else is kept about it.
struct context_resources {
  unique_context device{};
  unique_pd pd{};
  unique_fd epoll{};
  std::vector<unique_comp_channel> channels{};
  std::vector<unique_cq> cqs{};
  unique_cq notification_cq{};

  context_resources() noexcept = default;
  context_resources(context_resources&&) noexcept = default;
  context_resources& operator=(context_resources&& other) noexcept {
    if (this != &other) {
      destroy_or_report(false);
      swap(other);
    }
    return *this;
  }
  ~context_resources() { destroy_or_report(false); }

  void swap(context_resources& other) noexcept {
    device.swap(other.device);
    pd.swap(other.pd);
    epoll.swap(other.epoll);
    channels.swap(other.channels);
    cqs.swap(other.cqs);
    notification_cq.swap(other.notification_cq);
  }

  /// Destroys everything in the reverse order of construction. What fails to go stays, and so does
  /// what it was made from; the rest goes. Each failure is passed to `failed`. `pd_in_use`:
  /// something outside still lives in the protection domain.
  template <class Sink>
  void destroy(bool pd_in_use, Sink&& failed) noexcept {
    const auto attempt = [&failed](auto& owner, const char* what, std::size_t index) {
      if (auto gone = owner.reset(); !gone) {
        error e = gone.error();
        failed(e.explain("%s%s %zu", e.detail().empty() ? "" : "; ", what, index));
      }
    };
    if (notification_cq) attempt(notification_cq, "notification CQ", 0);
    for (std::size_t i = cqs.size(); i-- > 0;) attempt(cqs[i], "CQ", i);
    for (std::size_t i = channels.size(); i-- > 0;)
      if (!has_cq(channels[i].get())) attempt(channels[i], "completion channel", i);
    attempt(epoll, "epoll", 0);
    if (!pd_in_use) attempt(pd, "PD", 0);
    if (!has_children()) attempt(device, "device", 0);
  }

  /// The destructor's way: failures go to the teardown handler, and what stayed is let go of,
  /// alive, rather than pulled from under its children.
  void destroy_or_report(bool pd_in_use) noexcept {
    destroy(pd_in_use, [](const error& e) { detail::report_teardown(e); });
    static_cast<void>(notification_cq.release());
    for (unique_cq& cq : cqs) static_cast<void>(cq.release());
    for (unique_comp_channel& channel : channels) static_cast<void>(channel.release());
    static_cast<void>(pd.release());
    static_cast<void>(device.release());
    cqs.clear();
    channels.clear();
  }

 private:
  [[nodiscard]] bool has_cq(const ibv_comp_channel* channel) const noexcept {
    if (notification_cq && notification_cq->channel == channel) return true;
    for (const unique_cq& cq : cqs)
      if (cq && cq->channel == channel) return true;
    return false;
  }

  [[nodiscard]] bool has_children() const noexcept {
    if (notification_cq || pd) return true;
    for (const unique_cq& cq : cqs)
      if (cq) return true;
    for (const unique_comp_channel& channel : channels)
      if (channel) return true;
    return false;
  }
};

/// What was learned while opening. Plain values: they own nothing.
struct context_facts {
  ibv_device_attr device{};
  ibv_port_attr port{};
  int port_number = 0;
  gid_choice gid{};
};

struct opened_context {
  context_resources resources{};
  context_facts facts{};
};

/// Fills in the port: the one asked for, which must be active; or the first active one, else the
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

/// Opens a device and looks at its ports.
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

/// The device of the configured name; or the first whose port suits. In a search, a device that
/// cannot be had is passed over and its error is remembered: it is the answer where no device
/// suits.
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

/// Every GID of the device. Allocates.
[[nodiscard]] inline result<std::vector<ibv_gid_entry>> read_gid_table(const unique_context& device,
                                                                       const context_facts& facts) {
  // The table comes for all ports at once and too little room is an error, so the other ports are
  // asked for their sizes.
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
  std::vector<ibv_gid_entry> entries(room);
  auto count = query_gid_table(device, entries);
  if (!count) return failure(count.error());
  entries.resize(*count);
  return entries;
}

/// Chooses the GID, or takes the configured one.
[[nodiscard]] inline result<gid_choice> choose_configured_gid(const context_config& config,
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
  gid_choice chosen;
  if (config.gid_index < 0) {
    if (choose_gid(*entries, facts.port_number, facts.port.link_layer == IBV_LINK_LAYER_INFINIBAND,
                   chosen))
      return chosen;
    return failure(error(verb::query_gid_table, ENODATA)
                       .on(device.get())
                       .explain("no usable GID: all %d slots of port %d are empty",
                                facts.port.gid_tbl_len, facts.port_number));
  }
  for (const ibv_gid_entry& entry : *entries) {
    if (entry.port_num == static_cast<std::uint32_t>(facts.port_number) &&
        entry.gid_index == static_cast<std::uint32_t>(config.gid_index) &&
        family(entry.gid) != gid_family::none)
      return gid_choice{entry, "asked for by index"};
  }
  return failure(error(verb::query_gid_table, ENODATA)
                     .on(device.get())
                     .explain("context_config.gid_index %d of port %d is an empty slot",
                              config.gid_index, facts.port_number));
}

/// Completion channels, non-blocking and registered with the epoll descriptor, as is the device's
/// own event descriptor. Each registration carries its descriptor as data.
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

/// Completion queues, over the channels and the completion vectors in turn, each armed if it has a
/// channel.
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

/// Opens everything that `config` asks for. On failure nothing that it made is left. Allocates, so
/// it may throw bad_alloc.
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

  // The port may have changed while all this was built, and its event may have come before anybody
  // listened.
  auto port = query_port(resources.device, facts.port_number);
  if (!port) return failure(port.error());
  facts.port = *port;
  return opened;
}

}  // namespace ibvxx::inline IBVXX_RESULT_KIND::impl
