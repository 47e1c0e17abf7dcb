// The states of a context, and the objects that it owns, counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ibvxx/error.hpp>

namespace ibvxx {

/// Derived from what a context owns and from the state of its port and device; never stored.
enum class context_state : std::uint8_t {
  disabled,   ///< owns nothing
  enabled,    ///< complete, port active
  paused,     ///< complete; the port is not active, it has no usable GID, or pause() was called
  lost,       ///< the device is gone; call reset()
  releasing,  ///< a reset() is in progress, or one left objects: call reset() again
};

[[nodiscard]] constexpr const char* name(context_state state) noexcept {
  switch (state) {
    case context_state::disabled:
      return "disabled";
    case context_state::enabled:
      return "enabled";
    case context_state::paused:
      return "paused";
    case context_state::lost:
      return "lost";
    case context_state::releasing:
      return "releasing";
  }
  return "?";
}

/// The objects that a context owns at one moment, counted by kind.
struct context_inventory {
  std::size_t devices = 0, pds = 0, epolls = 0, channels = 0, cqs = 0, notification_cqs = 0,
              regions = 0, qps = 0;

  [[nodiscard]] std::size_t total() const noexcept {
    return devices + pds + epolls + channels + cqs + notification_cqs + regions + qps;
  }
  friend bool operator==(const context_inventory&, const context_inventory&) = default;
};

namespace detail {

/// Appends what is left: "...; left: 1 CQ, 1 channel, 1 device".
[[nodiscard]] inline error with_remains(error e, const context_inventory& left) noexcept {
  const struct {
    std::size_t count;
    const char* what;
  } rows[] = {{left.qps, "QP"},
              {left.regions, "MR"},
              {left.notification_cqs, "notification CQ"},
              {left.cqs, "CQ"},
              {left.channels, "channel"},
              {left.pds, "PD"},
              {left.devices, "device"}};
  const char* separator = "; left: ";
  for (const auto& row : rows) {
    if (row.count == 0) continue;
    e.explain("%s%zu %s", separator, row.count, row.what);
    separator = ", ";
  }
  return e;
}

}  // namespace detail

}  // namespace ibvxx
