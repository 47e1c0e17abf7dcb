#pragma once

#include <cstddef>
#include <ibvxx/ibvxx.hpp>

/// Registers `count` buffers of a page each on a context of its own, and releases them again.
ibvxx::result<void> fill_pool(std::size_t count);
