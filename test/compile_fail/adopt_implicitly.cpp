// must not compile: a raw pointer that becomes owned implicitly
// says: convert|conversion
#include <ibvxx/completion.hpp>

using namespace ibvxx;

unique_cq adopt(ibv_cq* raw) {
#ifdef RIGHT
  return unique_cq(raw);
#else
  return raw;
#endif
}
