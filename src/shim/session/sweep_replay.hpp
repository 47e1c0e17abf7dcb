// One run of a sweep in one line: "ibv_create_cq@2=ENOMEM,once;close@1/t2=EIO,always".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/fault_plan.hpp"

namespace ibvxx::shim {

[[nodiscard]] std::string to_replay(const std::vector<fault_rule>& rules);
/// The rules of such a line. Throws std::logic_error that names the malformed part.
[[nodiscard]] std::vector<fault_rule> from_replay(std::string_view line);

}  // namespace ibvxx::shim
