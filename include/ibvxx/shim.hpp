// The whole interface of libibvxx-shim.
#pragma once

#include <ibvxx/shim/completion_fault.hpp>
#include <ibvxx/shim/device.hpp>
#include <ibvxx/shim/fault.hpp>
#include <ibvxx/shim/ledger.hpp>
#include <ibvxx/shim/session.hpp>
#include <ibvxx/shim/session_options.hpp>
#include <ibvxx/shim/sweep.hpp>

/// Simulated devices in place of libibverbs, fault injection, and a ledger of the calls and objects
/// of a program: for tests.
namespace ibvxx::shim {}
