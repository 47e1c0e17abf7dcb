// must not compile: copying an owner would let two of them destroy one object
// says: delete
#include <ibvxx/domain.hpp>

using namespace ibvxx;

unique_pd pass_on(unique_pd& pd) {
#ifdef RIGHT
  return std::move(pd);
#else
  return pd;
#endif
}
