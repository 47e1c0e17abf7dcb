#include "intercept/device_memory.hpp"

#include "device/device_memory.hpp"

#include "forward/recorded_verbs.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

int memcpy_to_dm(ibv_dm* dm, std::uint64_t offset, const void* host, std::size_t length) {
  return intercepted(verb::memcpy_to_dm, &object_operations::memcpy_to_dm, &device::memcpy_to_dm,
                     dm, offset, host, length);
}

int free_dm(ibv_dm* dm) {
  return intercepted(verb::free_dm, &verbs_context::free_dm, &device::free_dm, dm);
}

// Its object is its second argument.
int memcpy_from_dm(void* host, ibv_dm* dm, std::uint64_t offset, std::size_t length) {
  call c(verb::memcpy_from_dm, dm);
  return answer(c, &real::memcpy_from_dm, &device::memcpy_from_dm, host, dm, offset, length);
}

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attributes) {
  return intercepted_maker(verb::alloc_dm, &verbs_context::alloc_dm, &device::alloc_dm,
                           &intercept_dm, context, attributes);
}

}  // namespace

void install_device_memory_operations(verbs_context& context) noexcept {
  context.alloc_dm = &alloc_dm;
  context.free_dm = &free_dm;
}

void intercept_dm(call& c, ibv_dm* made) {
  if (c.forwarded()) {
    remember_operations(made, {.memcpy_to_dm = replace(made->memcpy_to_dm, &memcpy_to_dm),
                               .memcpy_from_dm = replace(made->memcpy_from_dm, &memcpy_from_dm)});
    return;
  }
  made->memcpy_to_dm = &memcpy_to_dm;
  made->memcpy_from_dm = &memcpy_from_dm;
}

}  // namespace ibvxx::shim

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  return intercepted_maker(verb::import_dm, exported{"ibv_import_dm"}, &device::import_dm,
                           &intercept_dm, context, handle);
}

void ibv_unimport_dm(ibv_dm* dm) {
  return intercepted(verb::unimport_dm, exported{"ibv_unimport_dm"}, &device::unimport_dm, dm);
}

}  // extern "C"
