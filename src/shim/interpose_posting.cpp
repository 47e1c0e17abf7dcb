// Posting and polling.
#include "interpose.hpp"
#include "sim_queue_pair.hpp"

namespace ibvxx::shim {

void install_polling(sim_cq&, std::uint64_t) noexcept {}
void install_building(sim_qp&, std::uint64_t) noexcept {}
void install_posting_operations(verbs_context&) noexcept {}

}  // namespace ibvxx::shim
