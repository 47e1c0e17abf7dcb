#include "core/call_stack.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace ibvxx::shim {
namespace {

[[nodiscard]] std::string demangled(const char* symbol) {
  int status = 0;
  char* const readable = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string name = status == 0 && readable ? readable : symbol;
  std::free(readable);
  return name;
}

[[nodiscard]] std::string_view last_part(const char* path) noexcept {
  const std::string_view whole = path;
  return whole.substr(whole.rfind('/') + 1);
}

/// The shim's own frames are among the first of this number.
constexpr int own_frames = 8;

/// Whether a function is the shim's: one of its own, or a verb that it defines.
[[nodiscard]] bool is_own(const std::string& name) noexcept {
  return name.rfind("ibvxx::shim::", 0) == 0 || name.rfind("ibv_", 0) == 0;
}

}  // namespace

std::shared_ptr<const call_stack> capture_call_stack() {
  auto stack = std::make_shared<call_stack>();
  stack->depth = ::backtrace(stack->frames.data(), static_cast<int>(stack->frames.size()));
  return stack;
}

std::string to_lines(const call_stack& stack) {
  std::string lines;
  for (int i = 0; i < stack.depth; ++i) {
    auto* const frame = static_cast<char*>(stack.frames[static_cast<std::size_t>(i)]);
    Dl_info info{};
    // One byte back: the return address of a call at a function's end lies in the next function.
    const bool known = ::dladdr(frame - 1, &info) != 0;
    const std::string name = known && info.dli_sname ? demangled(info.dli_sname) : std::string();
    if (i < own_frames && is_own(name)) {
      lines.clear();  // the frames above it without a name are the shim's too
      continue;
    }
    char address[48];
    const auto base = known ? reinterpret_cast<std::uintptr_t>(info.dli_fbase) : 0;
    std::snprintf(address, sizeof address, "+0x%zx",
                  reinterpret_cast<std::uintptr_t>(frame) - base);
    lines += "\n      ";
    if (!name.empty()) lines += name + " in ";
    lines += known && info.dli_fname ? last_part(info.dli_fname) : std::string_view("?");
    lines += address;
  }
  return lines;
}

}  // namespace ibvxx::shim
