// The whole toolkit, in the order in which a new user needs it. Not here: format.hpp and
// std_format.hpp (formatters for fmt and std::format), or_throw.hpp (exceptions), and shim.hpp
// (tests without hardware).
#pragma once

// Errors and results.
#include <ibvxx/error.hpp>
#include <ibvxx/result.hpp>
#include <ibvxx/teardown.hpp>
#include <ibvxx/verb.hpp>

// The context: every object of a device, opened completely or not at all.
#include <ibvxx/context.hpp>
#include <ibvxx/context_config.hpp>
#include <ibvxx/context_state.hpp>

// Single owners: devices, domains, memory.
#include <ibvxx/device.hpp>
#include <ibvxx/device_memory.hpp>
#include <ibvxx/device_name.hpp>
#include <ibvxx/dmabuf.hpp>
#include <ibvxx/domain.hpp>
#include <ibvxx/fd.hpp>
#include <ibvxx/handle.hpp>
#include <ibvxx/memory.hpp>
#include <ibvxx/memory_window.hpp>

// Completions and events.
#include <ibvxx/completion.hpp>
#include <ibvxx/completion_status.hpp>
#include <ibvxx/cq_waiter.hpp>
#include <ibvxx/events.hpp>

// Queue pairs: creating, connecting, posting, receiving.
#include <ibvxx/posting.hpp>
#include <ibvxx/qp_address.hpp>
#include <ibvxx/qp_modify.hpp>
#include <ibvxx/qp_steps.hpp>
#include <ibvxx/qp_transition.hpp>
#include <ibvxx/queue_pair.hpp>
#include <ibvxx/receive.hpp>

// Addresses, GIDs and flows.
#include <ibvxx/address.hpp>
#include <ibvxx/flow.hpp>
#include <ibvxx/gid.hpp>
#include <ibvxx/gid_policy.hpp>

// Short texts, verbs newer than rdma-core 44, the version.
#include <ibvxx/optional_verbs.hpp>
#include <ibvxx/text.hpp>
#include <ibvxx/version.hpp>
