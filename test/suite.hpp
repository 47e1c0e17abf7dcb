// What nearly every test includes.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <ibvxx/format.hpp>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <ibvxx/shim.hpp>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
