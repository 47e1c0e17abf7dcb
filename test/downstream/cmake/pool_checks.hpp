#pragma once

#include <cstddef>

/// Fails every call of filling a pool in turn; true when each was told and nothing was left.
bool pool_survives_every_failure(std::size_t count);
