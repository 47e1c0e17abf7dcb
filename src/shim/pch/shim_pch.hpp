// What every file of the shim includes, one way or another, from elsewhere; compiled once.
#ifndef IBVXX_SHIM_PCH_HPP  // no "pragma once" in a header that is compiled by itself
#define IBVXX_SHIM_PCH_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#endif
