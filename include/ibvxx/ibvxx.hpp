// All of ibvxx but what needs another library (format.hpp), exceptions (or_throw.hpp) or the shim
// (shim.hpp).
#pragma once

#include <ibvxx/address.hpp>
#include <ibvxx/completion.hpp>
#include <ibvxx/context.hpp>
#include <ibvxx/context_config.hpp>
#include <ibvxx/device.hpp>
#include <ibvxx/device_memory.hpp>
#include <ibvxx/dmabuf.hpp>
#include <ibvxx/domain.hpp>
#include <ibvxx/error.hpp>
#include <ibvxx/fd.hpp>
#include <ibvxx/flow.hpp>
#include <ibvxx/gid.hpp>
#include <ibvxx/handle.hpp>
#include <ibvxx/memory.hpp>
#include <ibvxx/memory_registry.hpp>
#include <ibvxx/memory_window.hpp>
#include <ibvxx/newest.hpp>
#include <ibvxx/posting.hpp>
#include <ibvxx/queue_pair.hpp>
#include <ibvxx/receive.hpp>
#include <ibvxx/result.hpp>
#include <ibvxx/teardown.hpp>
#include <ibvxx/verb.hpp>
