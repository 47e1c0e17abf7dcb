// Device lists and contexts.
#include "device/context.hpp"

#include "forward/recorded_verbs.hpp"
#include "intercept/intercept.hpp"
#include "intercept/operations.hpp"

#undef ibv_get_device_list

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_device** ibv_get_device_list(int* num_devices) {
  return intercepted(verb::get_device_list, &real::get_device_list, &device::get_device_list,
                     num_devices);
}

void ibv_free_device_list(ibv_device** list) {
  intercepted(verb::free_device_list, exported{"ibv_free_device_list"}, &device::free_device_list,
              list);
}

ibv_context* ibv_open_device(ibv_device* device) {
  return intercepted_maker(verb::open_device, &real::open_device, &device::open_device,
                           &intercept_context, device);
}

ibv_context* ibv_import_device(int cmd_fd) {
  return intercepted_maker(verb::import_device, exported{"ibv_import_device"},
                           &device::import_device, &intercept_context, cmd_fd);
}

int ibv_close_device(ibv_context* context) {
  return intercepted(verb::close_device, exported{"ibv_close_device"}, &device::close_device,
                     context);
}

const char* ibv_get_device_name(ibv_device* device) {
  return intercepted_uncounted(exported{"ibv_get_device_name"}, &device::get_device_name, device);
}

int ibv_get_device_index(ibv_device* device) {
  return intercepted(verb::get_device_index, exported{"ibv_get_device_index"},
                     &device::get_device_index, device);
}

__be64 ibv_get_device_guid(ibv_device* device) {
  return intercepted_uncounted(exported{"ibv_get_device_guid"}, &device::get_device_guid, device);
}

}  // extern "C"
