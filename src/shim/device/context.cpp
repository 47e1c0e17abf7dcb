#include "device/context.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "core/freed_list.hpp"
#include "core/own_calls.hpp"
#include "device/machine.hpp"

namespace ibvxx::shim {
namespace {

/// The device behind an entry of a list; null, with a finding, for a pointer that is none.
[[nodiscard]] std::shared_ptr<sim_device> find_device(call& c, const ibv_device* device,
                                                      const char* called) noexcept {
  for (const auto& candidate : machine_of(c.state()).devices)
    if (&candidate->verbs == device) return candidate;
  c.found(finding_kind::foreign_pointer, std::string(called) + " was given " +
                                             (device ? "a" : "a null") +
                                             " pointer that is no device of this session");
  return nullptr;
}

/// The device whose command descriptor this is, or a duplicate of it. Costs: linear in the open
/// contexts, which only ibv_import_device pays.
[[nodiscard]] std::shared_ptr<sim_device> device_of_descriptor(const call& c, int cmd_fd) noexcept {
  struct stat given {};
  if (::fstat(cmd_fd, &given) != 0) return nullptr;
  for (const record& object : c.state().objects.live_of(object_kind::context)) {
    const auto* context = static_cast<const sim_context*>(object.storage.get());
    struct stat own {};
    if (::fstat(context->verbs.context.cmd_fd, &own) == 0 && own.st_ino == given.st_ino &&
        own.st_dev == given.st_dev)
      return context->device;
  }
  return nullptr;
}

/// A context that is not yet in the ledger, with the given command descriptor or a new one. Null
/// with errno where descriptors have run out.
[[nodiscard]] std::shared_ptr<sim_context> make_context(const std::shared_ptr<sim_device>& device,
                                                        int cmd_fd = -1) {
  auto made = std::make_shared<sim_context>();
  if ((made->descriptors[0] = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) == -1) return nullptr;
  // A file for each context: its inode identifies duplicates of the descriptor.
  if (cmd_fd == -1 && (cmd_fd = ::memfd_create("uverbs", MFD_CLOEXEC)) == -1) return nullptr;
  made->descriptors[1] = cmd_fd;
  made->device = device;
  verbs_context& verbs = made->verbs;
  verbs.sz = sizeof verbs;
  ibv_context& context = verbs.context;
  context.device = &device->verbs;
  context.async_fd = made->descriptors[0];
  context.cmd_fd = made->descriptors[1];
  context.num_comp_vectors = device->described.completion_vectors;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.mutex = PTHREAD_MUTEX_INITIALIZER;
  return made;
}

}  // namespace

void sim_context::close_descriptors() noexcept {
  for (int& fd : descriptors)
    if (const int open = std::exchange(fd, -1); open != -1) close_own(open);
}

namespace device {

ibv_device** get_device_list(call& c, int* num_devices) {
  if (num_devices) *num_devices = 0;  // also where it fails (rdma-core, libibverbs/device.c)
  if (c.failing()) return c.refuse_pointer();
  auto list = std::make_shared<sim_device_list>();
  for (const auto& device : machine_of(c.state()).devices)
    if (!device->lost) list->entries.push_back(&device->verbs);
  if (num_devices) *num_devices = static_cast<int>(list->entries.size());
  list->entries.push_back(nullptr);
  c.add(list, list->entries.data(), "", {});
  errno = 0;
  return list->entries.data();
}

void free_device_list(call& c, ibv_device** list) {
  if (c.ending<sim_device_list>(list)) static_cast<void>(c.destroy(list));
}

ibv_context* open_device(call& c, ibv_device* device) {
  const auto found = find_device(c, device, "ibv_open_device");
  if (!found) return c.refuse_pointer();
  find_freed_list(c, device);
  if (c.failing()) return c.refuse_pointer();
  if (found->lost) return c.refuse_pointer(ENODEV);
  auto made = make_context(found);
  if (!made) return nullptr;
  c.add(made, &made->verbs.context, found->described.name, {}).lost = &found->lost;
  return &made->verbs.context;
}

// On success the descriptor belongs to the context, and closing the device closes it (manual page).
ibv_context* import_device(call& c, int cmd_fd) {
  if (c.failing()) return c.refuse_pointer();
  const auto device = device_of_descriptor(c, cmd_fd);
  if (!device) return c.refuse_pointer(cmd_fd < 0 ? EINVAL : ENODEV);  // measured
  if (!device->described.features.imports) return c.refuse_pointer(EOPNOTSUPP);
  auto made = make_context(device, cmd_fd);
  if (!made) return nullptr;
  c.add(made, &made->verbs.context, device->described.name, {}).lost = &device->lost;
  return &made->verbs.context;
}

int close_device(call& c, ibv_context* context) {
  auto* ending = c.ending<sim_context>(context);
  if (!ending) return c.refuse_minus_one();
  const int code = c.destroy(context);
  if (code == 0) ending->close_descriptors();
  return code;
}

const char* get_device_name(call& c, ibv_device* device) {
  return c.is_seen() && find_device(c, device, "ibv_get_device_name") ? device->name : nullptr;
}

int get_device_index(call& c, ibv_device* device) {
  if (!find_device(c, device, "ibv_get_device_index") || c.failing())
    return c.refuse_by_convention();
  const auto& devices = machine_of(c.state()).devices;
  for (std::size_t index = 0; index < devices.size(); ++index)
    if (&devices[index]->verbs == device) return static_cast<int>(index);
  return -1;
}

__be64 get_device_guid(call& c, ibv_device* device) {
  const auto found = c.is_seen() ? find_device(c, device, "ibv_get_device_guid") : nullptr;
  return found ? found->described.limits.node_guid : 0;
}

}  // namespace device
}  // namespace ibvxx::shim
