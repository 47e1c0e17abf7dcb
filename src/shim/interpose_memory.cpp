// Memory regions.
#include <sys/resource.h>

#include "interpose.hpp"
#include "sim_objects.hpp"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using namespace ibvxx;
using namespace ibvxx::shim;

namespace {

/// The checks of the kernel, in its order (ib_check_mr_access, ib_umem_get; answers measured on
/// Soft-RoCE).
int check_region(const void* address, std::size_t length, unsigned access) {
  constexpr unsigned known = 0x3ff | IBV_ACCESS_OPTIONAL_RANGE;
  if (length == 0) return EINVAL;
  if ((access & ~known) != 0) return EINVAL;
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
      (access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return EINVAL;
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return EINVAL;
  if (reinterpret_cast<std::uintptr_t>(address) + length < length) return EINVAL;
  if (address == nullptr) return EFAULT;
  return 0;
}

ibv_mr* register_region(call& c, ibv_pd* pd, void* address, std::size_t length, unsigned access) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (const int code = check_region(address, length, access)) return c.refuse_pointer(code);
  auto made = std::make_shared<sim_mr>();
  made->verbs.context = pd->context;
  made->verbs.pd = pd;
  made->verbs.addr = address;
  made->verbs.length = length;
  made->verbs.handle = static_cast<std::uint32_t>(c.index());
  // As the kernel's keys: an index in the upper bits, a tag in the lowest byte.
  made->verbs.lkey = made->verbs.rkey = static_cast<std::uint32_t>(c.index() << 8 | 0x1d);
  c.add(made, &made->verbs, owner->context->device->described.name, {c.record_of(pd)});
  return &made->verbs;
}

}  // namespace

extern "C" {

// The macro of this name calls it or ibv_reg_mr_iova2, depending on constant folding: one verb,
// whichever it is.
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  call c(verb::reg_mr, pd);
  if (c.forwarded()) return forward<ibv_mr*>("ibv_reg_mr", pd, address, length, access);
  return register_region(c, pd, address, length, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                        int access) {
  call c(verb::reg_mr_iova, pd);
  if (c.forwarded()) return forward<ibv_mr*>("ibv_reg_mr_iova", pd, address, length, iova, access);
  return register_region(c, pd, address, length, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                         unsigned access) {
  call c(iova == reinterpret_cast<std::uintptr_t>(address) ? verb::reg_mr : verb::reg_mr_iova, pd);
  if (c.forwarded()) return forward<ibv_mr*>("ibv_reg_mr_iova2", pd, address, length, iova, access);
  return register_region(c, pd, address, length, access);
}

int ibv_dereg_mr(ibv_mr* mr) {
  call c(verb::dereg_mr, mr);
  if (c.forwarded()) return forward<int>("ibv_dereg_mr", mr);
  if (!c.ending<sim_mr>(mr)) return c.refuse_code();
  return c.destroy(mr);
}

}  // extern "C"
