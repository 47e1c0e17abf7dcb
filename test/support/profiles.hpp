// The same on Soft-RoCE and on hardware, as the simulation has them.
#pragma once

#include <ibvxx/shim.hpp>

#include "catch.hpp"
#include "queue_pairs.hpp"
#include "trace.hpp"

namespace ibvxx::test {

/// Calls `body(session, profile)` in a session of two devices of each profile. Nothing may be found
/// but what the body expects.
template <class Body>
void on_both_profiles(Body&& body) {
  for (const auto profile : {device_profile::soft_roce, device_profile::hardware}) {
    shim::session s(two_devices(profile));
    INFO((profile == device_profile::hardware ? "hardware" : "Soft-RoCE"));
    body(s, profile);
    CHECK(lines(s.finish()) == "");
  }
}

}  // namespace ibvxx::test
