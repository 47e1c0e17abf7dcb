// must not compile: nullptr where an object is needed
// says: delete
#include <ibvxx/domain.hpp>

using namespace ibvxx;

result<unique_pd> make(ibv_context* context) {
#ifdef RIGHT
  return alloc_pd(context);
#else
  static_cast<void>(context);
  return alloc_pd(nullptr);
#endif
}
