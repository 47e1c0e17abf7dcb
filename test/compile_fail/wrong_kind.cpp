// must not compile: a protection domain where a completion queue belongs
// says: convert|conversion|no matching
#include <ibvxx/completion.hpp>
#include <ibvxx/domain.hpp>

using namespace ibvxx;

result<void> arm(const unique_pd& pd, const unique_cq& cq) {
#ifdef RIGHT
  static_cast<void>(pd);
  return req_notify_cq(cq);
#else
  static_cast<void>(cq);
  return req_notify_cq(pd);
#endif
}
