// must not compile: copying a whole context
// says: delete
#include <ibvxx/context.hpp>

using namespace ibvxx;

rdma_context pass_on(rdma_context& context) {
#ifdef RIGHT
  return std::move(context);
#else
  return context;
#endif
}
