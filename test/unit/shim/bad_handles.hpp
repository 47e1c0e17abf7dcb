// Every verb that takes an object, to be called with something in its place.
#pragma once

#include <infiniband/verbs.h>

#include <functional>
#include <ibvxx/shim.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/every_object.hpp"

namespace ibvxx::test {

/// One verb. The call says whether the verb refused, by whatever convention it has; of those that
/// return nothing it says so always.
struct handle_call {
  const char* name;
  shim::object_kind kind;
  std::function<bool(void*, every_object&)> call;
};

[[nodiscard]] std::vector<handle_call> every_handle_call();

/// The object of a kind, as the program holds it; of queue pairs and CQs an extended one.
[[nodiscard]] void* handle_of(every_object& objects, shim::object_kind kind);

}  // namespace ibvxx::test
