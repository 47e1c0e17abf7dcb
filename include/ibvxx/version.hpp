// The version of ibvxx; docs/stability.md says what the numbers promise.
#pragma once

/// MAJOR * 10000 + MINOR * 100 + PATCH, for the preprocessor.
#define IBVXX_VERSION 100

/// Owners of verbs objects, verbs that return results, and the RDMA context. A verb `ibv_X` is
/// `ibvxx::X`. The namespace `detail` and the headers in ibvxx/detail are private and may change in
/// any release.
namespace ibvxx {

/// The same as text.
inline constexpr const char* version = "0.1.0";

}  // namespace ibvxx
