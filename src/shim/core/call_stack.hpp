// Call stacks for findings: captured at a call, printed as lines.
#pragma once

#include <array>
#include <memory>
#include <string>

namespace ibvxx::shim {

struct call_stack {
  std::array<void*, 32> frames{};
  int depth = 0;
};

/// Captures the calling thread's stack: the innermost frames, as many as fit.
[[nodiscard]] std::shared_ptr<const call_stack> capture_call_stack();

/// One indented line for each frame. Frames of the shim are left out where their names are known.
/// Names come from the dynamic symbol table: link the program with -rdynamic to have its own.
[[nodiscard]] std::string to_lines(const call_stack& stack);

}  // namespace ibvxx::shim
