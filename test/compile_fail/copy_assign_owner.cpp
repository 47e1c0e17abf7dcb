// must not compile: copy-assigning an owner
// says: delete
#include <ibvxx/fd.hpp>

using namespace ibvxx;

void take_over(unique_fd& mine, unique_fd& other) {
#ifdef RIGHT
  mine = std::move(other);
#else
  mine = other;
#endif
}
