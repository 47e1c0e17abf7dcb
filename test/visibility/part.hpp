// What a shared object shows of itself.
#pragma once

namespace ibvxx::visibility_test {

/// Reports a failed destroy (EBUSY), as a destructor there would.
[[gnu::visibility("default")]] void part_cannot_destroy();
/// Throws an ibvxx::exception (ENOMEM).
[[gnu::visibility("default")]] void part_throws();

}  // namespace ibvxx::visibility_test
