// must not compile: a view of a temporary owner, which would dangle
// says: delete
#include <ibvxx/domain.hpp>

using namespace ibvxx;

unique_pd make();

ref<ibv_pd> view() {
#ifdef RIGHT
  static const unique_pd kept = make();
  return kept;
#else
  return make();
#endif
}
