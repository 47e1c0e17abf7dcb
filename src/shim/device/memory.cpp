#include "device/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>

#include "device/data_path/send_queue.hpp"
#include "device/device_memory.hpp"
#include "device/domain.hpp"
#include "device/machine.hpp"
#include "device/misuse.hpp"
#include "device/object.hpp"
#include "device/page_check.hpp"

namespace ibvxx::shim {
namespace {

constexpr unsigned remote_access =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

[[nodiscard]] std::uintptr_t page_offset(std::uint64_t address) noexcept {
  return static_cast<std::uintptr_t>(address) &
         (static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) - 1);
}

/// The checks of access bits by ib_check_mr_access and the drivers (measured bit by bit on
/// Soft-RoCE, Linux 6.1).
[[nodiscard]] int check_access(const sim_context& context, unsigned access) noexcept {
  constexpr unsigned known = 0xffU | IBV_ACCESS_OPTIONAL_RANGE;
  if ((access & ~known) != 0) return EINVAL;
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
      (access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return EINVAL;
  if ((access & IBV_ACCESS_ON_DEMAND) != 0 && !context.offers().on_demand_paging) return EINVAL;
  return 0;
}

/// The checks of the kernel, in its order (ib_uverbs_reg_mr, ib_umem_get; measured).
[[nodiscard]] int check_region(const sim_context& context, const void* address, std::size_t length,
                               std::uint64_t iova, unsigned access) noexcept {
  if (length == 0 || length > context.limits().max_mr_size) return EINVAL;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const bool on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
  const bool everything = on_demand && length == SIZE_MAX;
  if (page_offset(begin) != page_offset(iova) && (access & IBV_ACCESS_ZERO_BASED) == 0)
    return EINVAL;
  if (const int code = check_access(context, access)) return code;
  if (everything) return 0;
  if (begin + length < length) return EINVAL;
  if (address == nullptr) return EFAULT;
  return on_demand ? 0 : check_pages(address, length, (access & IBV_ACCESS_LOCAL_WRITE) != 0);
}

/// A region in a domain, with its keys, not yet in the ledger; null where the keys have run out.
[[nodiscard]] std::shared_ptr<sim_mr> make_region(const sim_pd& owner, ibv_pd* pd, const call& c,
                                                  unsigned access) {
  auto made = std::make_shared<sim_mr>();
  const std::uint32_t index = owner.context->device->keys.take({0, made.get(), nullptr});
  if (index == 0) return nullptr;
  made->context = owner.context;
  made->domain = owner.domain;
  made->access = access;
  ibv_mr& verbs = made->verbs;
  verbs.context = pd->context;
  verbs.pd = pd;
  verbs.handle = handle_of(c);
  // The tag is arbitrary; an index that is used again gets another one.
  verbs.lkey = index << 8 | static_cast<std::uint32_t>(0x1d + c.index()) % 0xff;
  owner.context->device->keys.find(index)->key = verbs.lkey;
  // Without remote access there is no rkey (rxe_mr_init_user; measured).
  verbs.rkey = (access & remote_access) != 0 ? verbs.lkey : 0;
  return made;
}

[[nodiscard]] bool no_room(const sim_pd& owner) noexcept {
  return is_full(*owner.context->device, object_kind::mr, owner.context->limits().max_mr);
}

ibv_mr* register_region(call& c, ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                        unsigned access) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (const int code = check_region(*owner->context, address, length, iova, access))
    return c.refuse_pointer(code);
  if (no_room(*owner)) return c.refuse_pointer(owner->context->behaviour().too_many_objects);
  auto made = make_region(*owner, pd, c, access);
  if (!made) return c.refuse_pointer(ENOMEM);
  made->bytes = static_cast<std::byte*>(address);
  made->iova = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova;
  made->length = length;
  made->verbs.addr = address;
  made->verbs.length = length;
  machine_of(c.state()).registered = true;
  index_region(machine_of(c.state()), *made);
  record_object(c, made, &made->verbs, *owner->context->device, {c.record_of(pd)});
  return &made->verbs;
}

/// ibv_rereg_mr without its input checks: 0 or the errno of the command.
[[nodiscard]] int change_region(call& c, sim_mr& mr, int flags, ibv_pd* pd, void* address,
                                std::size_t length, unsigned access) {
  if (c.failing()) return c.refuse_code();
  if (!mr.context->offers().reregistration) return EOPNOTSUPP;
  sim_pd* next = nullptr;
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && !(next = c.use<sim_pd>(pd))) return EINVAL;
  const unsigned bits = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? access : mr.access;
  const bool moved = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  if (mr.windows != 0) return EBUSY;
  if (const int code = check_access(*mr.context, bits)) return code;
  if (moved) {
    const auto iova = reinterpret_cast<std::uintptr_t>(address);
    if (const int code = check_region(*mr.context, address, length, iova, bits)) return code;
    find_memory_in_use(c, mr);
    mr.forgotten.clear();
    mr.bytes = static_cast<std::byte*>(address);
    mr.iova = iova;
    mr.length = length;
    index_region(machine_of(c.state()), mr);
  }
  if (next) {
    mr.domain = next->domain;
    c.state().objects.adopt(*c.record_of(&mr.verbs), *c.record_of(mr.verbs.pd), *c.record_of(pd));
  }
  mr.access = bits;
  mr.verbs.rkey = (bits & remote_access) != 0 ? mr.verbs.lkey : 0;
  return 0;
}

/// Retries requests that wait, after a region changed or was destroyed: all of them if one in a
/// queue names the region.
void retry_after_change(session_state& state, const sim_mr& region) {
  if (region.context->device->keys.is_referred_to(region.verbs.lkey >> 8))
    return retry_waiting(state);
  wake_those_behind_memory(state);
  continue_waiting(state);
}

constinit std::atomic<int> region_count{0};

}  // namespace

bool has_regions() noexcept {
  return region_count.load(std::memory_order_relaxed) != 0;
}

void count_regions(int by) noexcept {
  region_count.fetch_add(by, std::memory_order_relaxed);
}

void index_region(machine& own, sim_mr& region) {
  if (region.place != 0)
    own.regions.erase(region.place);
  else
    count_regions(1);
  const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(region.bytes);
  region.place = own.regions.insert(begin, begin + region.length, &region);
}

void forget_region(machine& own, sim_mr& region) noexcept {
  region.context->device->keys.release(region.verbs.lkey >> 8);
  if (region.place == 0) return;
  own.regions.erase(std::exchange(region.place, 0));
  count_regions(-1);
}

sim_mr::~sim_mr() {
  if (mapping) ::munmap(mapping, mapped);
}

namespace device {

ibv_mr* alloc_null_mr(call& c, ibv_pd* pd) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (!owner->context->offers().null_regions) return c.refuse_pointer(EOPNOTSUPP);
  if (no_room(*owner)) return c.refuse_pointer(owner->context->behaviour().too_many_objects);
  auto made = make_region(*owner, pd, c, IBV_ACCESS_LOCAL_WRITE);
  if (!made) return c.refuse_pointer(ENOMEM);
  made->kind_of_memory = sim_mr::backing::nothing;
  made->length = UINT64_MAX;
  record_object(c, made, &made->verbs, *owner->context->device, {c.record_of(pd)});
  return &made->verbs;
}

ibv_mr* reg_dm_mr(call& c, ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner) return c.refuse_pointer();
  auto* memory = c.use<sim_dm>(dm);
  if (!memory || c.failing()) return c.refuse_pointer();
  if (!owner->context->offers().device_memory) return c.refuse_pointer(EOPNOTSUPP);
  // ib_uverbs_reg_dm_mr: zero-based, and inside.
  const std::uint64_t size = memory->original->memory.size();
  if ((access & IBV_ACCESS_ZERO_BASED) == 0 || length == 0 || offset > size ||
      length > size - offset)
    return c.refuse_pointer(EINVAL);
  if (const int code = check_access(*owner->context, access)) return c.refuse_pointer(code);
  if (no_room(*owner)) return c.refuse_pointer(owner->context->behaviour().too_many_objects);
  auto made = make_region(*owner, pd, c, access);
  if (!made) return c.refuse_pointer(ENOMEM);
  made->kind_of_memory = sim_mr::backing::device;
  made->bytes = memory->original->memory.data() + offset;
  made->length = length;
  made->verbs.length = length;
  record_object(c, made, &made->verbs, *owner->context->device, {c.record_of(pd), c.record_of(dm)});
  return &made->verbs;
}

int advise_mr(call& c, ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags,
              ibv_sge* ranges, std::uint32_t count) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing()) return c.refuse_code();
  if (!owner->context->offers().advice) return EOPNOTSUPP;
  // mlx5 (kernel, odp.c), and the uverbs method, which requires at least one range.
  if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
      advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
    return EOPNOTSUPP;
  if (count == 0 || !ranges || (flags & ~unsigned{IBV_ADVISE_MR_FLAG_FLUSH}) != 0) return EINVAL;
  for (std::uint32_t i = 0; i < count; ++i) {
    const key_entry* entry = owner->context->device->keys.find_key(ranges[i].lkey);
    if (!entry || !entry->mr || entry->mr->domain != owner->domain) return EINVAL;
    if ((entry->mr->access & IBV_ACCESS_ON_DEMAND) == 0) return EINVAL;
  }
  return 0;
}

// The macro of this name calls it or ibv_reg_mr_iova2, depending on constant folding: one verb in
// both cases.
ibv_mr* reg_mr(call& c, ibv_pd* pd, void* address, std::size_t length, int access) {
  return register_region(c, pd, address, length, reinterpret_cast<std::uintptr_t>(address),
                         static_cast<unsigned>(access));
}

ibv_mr* reg_mr_iova(call& c, ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                    int access) {
  return register_region(c, pd, address, length, iova, static_cast<unsigned>(access));
}

ibv_mr* reg_mr_iova2(call& c, ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                     unsigned access) {
  return register_region(c, pd, address, length, iova, access);
}

ibv_mr* reg_dmabuf_mr(call& c, ibv_pd* pd, std::uint64_t offset, std::size_t length,
                      std::uint64_t iova, int fd, int access) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (!owner->context->offers().dmabuf_regions) return c.refuse_pointer(EOPNOTSUPP);
  const auto bits = static_cast<unsigned>(access);
  if (length == 0 || page_offset(offset) != page_offset(iova)) return c.refuse_pointer(EINVAL);
  if (const int code = check_access(*owner->context, bits)) return c.refuse_pointer(code);
  if (::dup2(fd, fd) == -1) return c.refuse_pointer(EBADF);
  if (no_room(*owner)) return c.refuse_pointer(owner->context->behaviour().too_many_objects);
  auto made = make_region(*owner, pd, c, bits);
  if (!made) return c.refuse_pointer(ENOMEM);
  // The region keeps the buffer, not the descriptor. Where the buffer can be mapped (a memfd in its
  // place, or a driver with mmap), transfers carry data.
  const std::uintptr_t lead = page_offset(offset);
  void* mapping = ::mmap(nullptr, length + lead, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                         static_cast<off_t>(offset - lead));
  made->kind_of_memory = sim_mr::backing::foreign;
  if (mapping != MAP_FAILED) {
    made->mapping = mapping;
    made->mapped = length + lead;
    made->bytes = static_cast<std::byte*>(mapping) + lead;
  }
  made->iova = iova;
  made->length = length;
  made->verbs.addr = reinterpret_cast<void*>(offset);  // as libibverbs sets it
  made->verbs.length = length;
  record_object(c, made, &made->verbs, *owner->context->device, {c.record_of(pd)});
  return &made->verbs;
}

ibv_mr* import_mr(call& c, ibv_pd* pd, std::uint32_t handle) {
  auto* owner = c.use<sim_pd>(pd);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (!owner->context->offers().imports) return c.refuse_pointer(EOPNOTSUPP);
  const record* found = find_handle<sim_mr>(c, *owner->context->device, handle);
  if (!found) return c.refuse_pointer(ENOENT);
  auto made = std::make_shared<sim_mr>();
  made->context = owner->context;
  made->domain = owner->domain;
  made->imported = true;
  made->verbs = object_of<sim_mr>(*found).verbs;
  made->verbs.context = pd->context;
  made->verbs.pd = pd;
  made->verbs.addr = nullptr;
  record_object(c, made, &made->verbs, *owner->context->device, {c.record_of(pd)});
  return &made->verbs;
}

void unimport_mr(call& c, ibv_mr* mr) {
  auto* ending = c.ending<sim_mr>(mr);
  if (!ending) return;
  if (!ending->imported)
    c.found(finding_kind::wrong_kind,
            c.here() + " on " + c.record_of(mr)->title + ", which was registered, not imported");
  else
    c.destroy_regardless(mr);
}

int dereg_mr(call& c, ibv_mr* mr) {
  auto* ending = c.ending<sim_mr>(mr);
  if (!ending) return c.refuse_code();
  if (ending->imported) {
    c.found(finding_kind::wrong_kind, c.here() + " on " + c.record_of(mr)->title +
                                          ", which was imported: it is unimported, not destroyed");
    return c.refuse_code();
  }
  if (ending->windows != 0 && !c.failing()) {
    c.found(finding_kind::destroyed_in_use, c.here() + " on " + c.record_of(mr)->title + " while " +
                                                std::to_string(ending->windows) +
                                                " memory window(s) are bound to it");
    return ending->context->behaviour().region_has_windows;
  }
  if (!c.failing()) find_memory_in_use(c, *ending);
  const int code = c.destroy(mr);
  if (code == 0) {
    forget_region(machine_of(c.state()), *ending);
    retry_after_change(c.state(), *ending);
  }
  return c.concluded(code);
}

int rereg_mr(call& c, ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length,
             int access) {
  auto* region = c.use<sim_mr>(mr);
  // First the checks of libibverbs; every later failure is IBV_REREG_MR_ERR_CMD (rdma-core 44).
  if (!region || region->imported || region->kind_of_memory != sim_mr::backing::memory ||
      (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 ||
      ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 && (length == 0 || !address)) ||
      (access != 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) == 0)) {
    errno = EINVAL;
    return IBV_REREG_MR_ERR_INPUT;
  }
  if (const int code =
          change_region(c, *region, flags, pd, address, length, static_cast<unsigned>(access))) {
    errno = code;
    return IBV_REREG_MR_ERR_CMD;
  }
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) mr->pd = pd;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    mr->addr = address;
    mr->length = length;
  }
  retry_after_change(c.state(), *region);
  return 0;
}

}  // namespace device
}  // namespace ibvxx::shim
