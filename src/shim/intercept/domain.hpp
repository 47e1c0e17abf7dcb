// The operations of a context for protection domains, thread domains, parent domains and XRC
// domains.
#pragma once

#include <infiniband/verbs.h>

namespace ibvxx::shim {

void install_domain_operations(verbs_context& context) noexcept;

}  // namespace ibvxx::shim
