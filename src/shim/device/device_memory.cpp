#include "device/device_memory.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include "device/object.hpp"

namespace ibvxx::shim {
namespace {

/// mlx5's checks (rdma-core 44, providers/mlx5/mlx5.h and verbs.c): multiples of 4, inside.
[[nodiscard]] int check_copy(const sim_dm& dm, std::uint64_t offset, std::size_t length) noexcept {
  const std::uint64_t size = dm.original->memory.size();
  if ((offset | length) % 4 != 0) return EINVAL;
  return offset <= size && length <= size - offset ? 0 : EFAULT;
}

[[nodiscard]] std::shared_ptr<sim_dm> make_dm(sim_context& owner, std::uint32_t handle) {
  auto made = std::make_shared<sim_dm>();
  made->context = &owner;
  made->verbs.context = &owner.verbs.context;
  made->verbs.handle = handle;
  return made;
}

}  // namespace

namespace device {

ibv_dm* alloc_dm(call& c, ibv_context* context, ibv_alloc_dm_attr* attributes) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(attributes, "attr")) return c.refuse_pointer();
  if (!owner->offers().device_memory) return c.refuse_pointer(EOPNOTSUPP);
  sim_device& device = *owner->device;
  const std::uint64_t limit = device.described.max_dm_size;
  if (attributes->comp_mask != 0 || attributes->length == 0 || attributes->length > limit ||
      attributes->log_align_req > 12)
    return c.refuse_pointer(EINVAL);
  if (attributes->length > limit - device.dm_in_use) return c.refuse_pointer(ENOMEM);
  auto made = make_dm(*owner, handle_of(c));
  made->memory.resize(attributes->length);  // zeroed, as the device hands it out
  device.dm_in_use += attributes->length;
  record_object(c, made, &made->verbs, device, {c.record_of(context)});
  return &made->verbs;
}

int free_dm(call& c, ibv_dm* dm) {
  auto* ending = c.ending<sim_dm>(dm);
  if (!ending) return c.refuse_code();
  if (ending->imported) {
    c.found(finding_kind::wrong_kind, c.here() + " on " + c.record_of(dm)->title +
                                          ", which was imported: it is unimported, not freed");
    return c.refuse_code();
  }
  const int code = c.destroy(dm);
  if (code == 0) {
    ending->context->device->dm_in_use -= ending->memory.size();
    if (!ending->exported) ending->memory = {};
  }
  return c.concluded(code);
}

ibv_dm* import_dm(call& c, ibv_context* context, std::uint32_t handle) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (!owner->offers().imports) return c.refuse_pointer(EOPNOTSUPP);
  record* const original = find_handle<sim_dm>(c, *owner->device, handle);
  if (!original) return c.refuse_pointer(ENOENT);
  auto made = make_dm(*owner, handle);
  made->original = object_of<sim_dm>(*original).original;
  made->original->exported = true;
  made->imported = true;
  record& object = record_object(c, made, &made->verbs, *owner->device, {c.record_of(context)});
  c.state().objects.keep(object, *original);
  return &made->verbs;
}

void unimport_dm(call& c, ibv_dm* dm) {
  auto* ending = c.ending<sim_dm>(dm);
  if (!ending) return;
  if (!ending->imported)
    c.found(finding_kind::wrong_kind,
            c.here() + " on " + c.record_of(dm)->title + ", which was allocated, not imported");
  else
    c.destroy_regardless(dm);
}

int memcpy_to_dm(call& c, ibv_dm* dm, std::uint64_t offset, const void* host, std::size_t length) {
  auto* memory = c.use<sim_dm>(dm);
  if (!memory || c.failing()) return c.refuse_code();
  if (const int code = check_copy(*memory, offset, length)) return code;
  if (length == 0) return 0;
  if (!c.given(host, "host_addr")) return EFAULT;
  std::memcpy(memory->original->memory.data() + offset, host, length);
  return 0;
}

int memcpy_from_dm(call& c, void* host, ibv_dm* dm, std::uint64_t offset, std::size_t length) {
  auto* memory = c.use<sim_dm>(dm);
  if (!memory || c.failing()) return c.refuse_code();
  if (const int code = check_copy(*memory, offset, length)) return code;
  if (length == 0) return 0;
  if (!c.given(host, "host_addr")) return EFAULT;
  std::memcpy(host, memory->original->memory.data() + offset, length);
  return 0;
}

}  // namespace device
}  // namespace ibvxx::shim
