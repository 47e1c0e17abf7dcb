#include "pool.hpp"

#include <cstddef>
#include <span>
#include <vector>

ibvxx::result<void> fill_pool(std::size_t count) {
  constexpr std::size_t page = 4096;
  std::vector<std::byte> memory(count * page);
  ibvxx::rdma_context context({});
  if (auto enabled = context.enable(); !enabled) return enabled;
  for (std::size_t i = 0; i < count; ++i) {
    auto region =
        context.register_memory(std::span(memory).subspan(i * page, page), IBV_ACCESS_LOCAL_WRITE);
    if (!region) return ibvxx::failure(region.error());
  }
  return context.reset();
}
