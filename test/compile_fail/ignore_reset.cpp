// must not compile: ignoring that a reset may have kept the object
// says: nodiscard
#include <ibvxx/memory.hpp>

using namespace ibvxx;

bool give_back(unique_mr& mr) {
#ifdef RIGHT
  return mr.reset().has_value();
#else
  mr.reset();
  return true;
#endif
}
