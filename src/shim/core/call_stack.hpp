// Where in the program something happened.
#pragma once

#include <array>
#include <memory>
#include <string>

namespace ibvxx::shim {

struct call_stack {
  std::array<void*, 32> frames{};
  int depth = 0;
};

/// The calling thread's, as far as it is kept.
[[nodiscard]] std::shared_ptr<const call_stack> capture_call_stack();

/// One line a frame, indented, without the shim's own where their names are known. Names come from
/// the dynamic symbol table: link the program with -rdynamic to have its own.
[[nodiscard]] std::string to_lines(const call_stack& stack);

}  // namespace ibvxx::shim
