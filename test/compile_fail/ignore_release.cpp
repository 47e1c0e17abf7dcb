// must not compile: releasing an object into nowhere leaks it
// says: nodiscard
#include <ibvxx/memory.hpp>

using namespace ibvxx;

void let_go(unique_mr& mr, ibv_mr*& heir) {
#ifdef RIGHT
  heir = mr.release();
#else
  static_cast<void>(heir);
  mr.release();
#endif
}
