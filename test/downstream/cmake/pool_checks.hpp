#pragma once

#include <cstddef>

/// Fails every call of filling a pool in turn; true if each failure was reported and nothing is
/// left.
bool pool_survives_every_failure(std::size_t count);
