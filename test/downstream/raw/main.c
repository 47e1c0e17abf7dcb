/* Run with IBVXX_SHIM=simulate it finds the simulated device, without having been written for it.
 */
#include <stdio.h>
#include <string.h>

#include "endpoint.h"

int main(void) {
  struct endpoint e;
  struct failed_call failed = endpoint_open(&e);
  if (!failed.name) {
    printf("opened %s\n", ibv_get_device_name(e.context->device));
    failed = endpoint_close(&e);
  }
  if (failed.name) fprintf(stderr, "%s: %s\n", failed.name, strerror(failed.code));
  return failed.name ? 1 : 0;
}
