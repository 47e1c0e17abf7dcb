// What the shim says when it is misused.
#pragma once

#include <stdexcept>
#include <string>

namespace ibvxx::test {

/// The text of the std::logic_error that `work` ends with, or "not refused".
template <class Work>
std::string reason(Work&& work) {
  try {
    static_cast<void>(work());
  } catch (const std::logic_error& refused) {
    return refused.what();
  }
  return "not refused";
}

}  // namespace ibvxx::test
