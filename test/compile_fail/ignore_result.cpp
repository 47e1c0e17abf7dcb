// must not compile: ignoring whether a verb succeeded
// says: nodiscard
#include <ibvxx/completion.hpp>

using namespace ibvxx;

bool arm(const unique_cq& cq) {
#ifdef RIGHT
  return req_notify_cq(cq).has_value();
#else
  req_notify_cq(cq);
  return true;
#endif
}
