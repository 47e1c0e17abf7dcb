// What the files that define intercepted functions share.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <ibvxx/shim/device.hpp>
#include <type_traits>

#include "engine.hpp"
#include "real.hpp"

namespace ibvxx::shim {

/// Calls the function of that name in the real libibverbs. Without the library it answers as one
/// without devices would: ENOSYS, by the convention of the return type.
template <class Result, class... Arguments>
Result forward(const char* name, Arguments... arguments) noexcept {
  using function = Result(Arguments...);
  if (auto* target = real::verbs_function<function>(name)) return target(arguments...);
  errno = ENOSYS;
  if constexpr (std::is_pointer_v<Result>)
    return nullptr;
  else if constexpr (!std::is_void_v<Result>)
    return static_cast<Result>(ENOSYS);
}

/// Fills in an entry of a GID table; false for an empty slot.
inline bool fill_gid_entry(const port_description& port, std::uint32_t number, std::uint32_t index,
                           ibv_gid_entry& out) noexcept {
  if (index >= port.gids.size()) return false;
  const gid_slot& slot = port.gids[index];
  if (slot.gid.global.subnet_prefix == 0 && slot.gid.global.interface_id == 0) return false;
  out.gid = slot.gid;
  out.gid_index = index;
  out.port_num = number;
  out.gid_type = static_cast<std::uint32_t>(slot.type);
  out.ndev_ifindex = slot.ndev_ifindex;
  return true;
}

/// Puts the operations that verbs.h calls through the context in place, family by family.
void install_completion_operations(ibv_context& context) noexcept;

}  // namespace ibvxx::shim
