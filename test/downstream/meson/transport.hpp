// Opens a device, registers a buffer on it, and releases both.
#pragma once

#include <cstddef>
#include <ibvxx/ibvxx.hpp>
#include <span>

inline ibvxx::result<void> run_transport() {
  static std::byte buffer[4096];
  auto context = ibvxx::rdma_context::open({.comp_channels = 2, .cqs = 4});
  if (!context) return ibvxx::failure(context.error());
  auto region = context->register_memory(std::span(buffer), IBV_ACCESS_LOCAL_WRITE);
  if (!region) return ibvxx::failure(region.error());
  return context->reset();
}
