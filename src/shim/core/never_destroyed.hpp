// Values that outlive everything else in the process. Header only.
#pragma once

namespace ibvxx::shim {

/// A value that is never destroyed: a verb may be called until the process exits. As a constant-
/// initialised variable it is there before any code runs, so a fork cannot come into its making.
template <class T>
union never_destroyed {
  T value;
  constexpr never_destroyed() : value() {}
  ~never_destroyed() {}
};

}  // namespace ibvxx::shim
