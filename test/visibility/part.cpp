// A shared object that hides its symbols, all but these.
#include <ibvxx/or_throw.hpp>
#include <ibvxx/teardown.hpp>

#include "part.hpp"

namespace ibvxx::visibility_test {

void part_cannot_destroy() {
  detail::report_teardown({verb::dealloc_pd, EBUSY});
}

void part_throws() {
  or_throw(result<void>(failure(error(verb::alloc_pd, ENOMEM))));
}

}  // namespace ibvxx::visibility_test
