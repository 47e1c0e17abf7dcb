// must not compile: registering memory that must not be written through the region
// says: static assertion|static_assert|no matching
#include <ibvxx/context.hpp>

using namespace ibvxx;

result<ibv_mr*> expose(rdma_context& context, std::span<char> buffer) {
#ifdef RIGHT
  return context.register_memory(buffer, IBV_ACCESS_LOCAL_WRITE);
#else
  return context.register_memory(std::span<const char>(buffer), IBV_ACCESS_LOCAL_WRITE);
#endif
}
