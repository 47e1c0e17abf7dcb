// What the C++ blocks of the documentation may speak of without declaring it.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <ibvxx/format.hpp>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <ibvxx/shim.hpp>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

using namespace ibvxx;

extern ibv_context* context_pointer;
extern ibv_pd* pd_pointer;
extern ibv_cq* cq_pointer;
extern ibv_qp* qp_pointer;
extern ibv_comp_channel* channel_pointer;
extern std::span<std::byte> buffer;
