#pragma once

#include <cstddef>
#include <ibvxx/ibvxx.hpp>

/// Registers `count` buffers of a page each on a context of its own, and takes them down again.
ibvxx::result<void> fill_pool(std::size_t count);
