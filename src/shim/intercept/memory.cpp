#include "intercept/memory.hpp"

#include "device/memory.hpp"

#include "forward/recorded_verbs.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  return intercepted(verb::alloc_null_mr, &verbs_context::alloc_null_mr, &device::alloc_null_mr,
                     pd);
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access) {
  return intercepted(verb::reg_dm_mr, &verbs_context::reg_dm_mr, &device::reg_dm_mr, pd, dm, offset,
                     length, access);
}

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* ranges,
              std::uint32_t count) {
  return intercepted(verb::advise_mr, &verbs_context::advise_mr, &device::advise_mr, pd, advice,
                     flags, ranges, count);
}

}  // namespace

void install_memory_operations(verbs_context& context) noexcept {
  context.alloc_null_mr = &alloc_null_mr;
  context.reg_dm_mr = &reg_dm_mr;
  context.advise_mr = &advise_mr;
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return intercepted(verb::reg_mr, exported{"ibv_reg_mr"}, &device::reg_mr, pd, address, length,
                     access);
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                        int access) {
  return intercepted(verb::reg_mr_iova, exported{"ibv_reg_mr_iova"}, &device::reg_mr_iova, pd,
                     address, length, iova, access);
}

// verbs.h calls it for ibv_reg_mr too, depending on constant folding: one verb in both cases.
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                         unsigned access) {
  return intercepted(
      iova == reinterpret_cast<std::uintptr_t>(address) ? verb::reg_mr : verb::reg_mr_iova,
      exported{"ibv_reg_mr_iova2"}, &device::reg_mr_iova2, pd, address, length, iova, access);
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                          int fd, int access) {
  return intercepted(verb::reg_dmabuf_mr, exported{"ibv_reg_dmabuf_mr"}, &device::reg_dmabuf_mr, pd,
                     offset, length, iova, fd, access);
}

ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  return intercepted(verb::import_mr, exported{"ibv_import_mr"}, &device::import_mr, pd, handle);
}

void ibv_unimport_mr(ibv_mr* mr) {
  return intercepted(verb::unimport_mr, exported{"ibv_unimport_mr"}, &device::unimport_mr, mr);
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  return intercepted(verb::rereg_mr, &real::rereg_mr, &device::rereg_mr, mr, flags, pd, address,
                     length, access);
}

int ibv_dereg_mr(ibv_mr* mr) {
  return intercepted(verb::dereg_mr, exported{"ibv_dereg_mr"}, &device::dereg_mr, mr);
}

}  // extern "C"
