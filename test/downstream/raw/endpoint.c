#include "endpoint.h"

#include <errno.h>
#include <stddef.h>

static struct failed_call failed_with_errno(const char* name) {
  struct failed_call failed = {name, errno};
  return failed;
}

struct failed_call endpoint_open(struct endpoint* e) {
  struct failed_call failed = {NULL, 0};
  struct ibv_device** devices = ibv_get_device_list(NULL);
  if (!devices) return failed_with_errno("ibv_get_device_list");
  errno = ENODEV;
  e->context = devices[0] ? ibv_open_device(devices[0]) : NULL;
  if (!e->context) failed = failed_with_errno("ibv_open_device");
  ibv_free_device_list(devices);
  if (failed.name) return failed;

  e->pd = ibv_alloc_pd(e->context);
  if (!e->pd) {
    failed = failed_with_errno("ibv_alloc_pd");
    goto close_device;
  }
  e->cq = ibv_create_cq(e->context, 16, NULL, NULL, 0);
  if (!e->cq) {
    failed = failed_with_errno("ibv_create_cq");
#ifdef LEAK
    goto close_device;
#else
    goto dealloc_pd;
#endif
  }
  return failed;

#ifndef LEAK
dealloc_pd:
  ibv_dealloc_pd(e->pd);
#endif
close_device:
  ibv_close_device(e->context);
  return failed;
}

/* What cannot be destroyed stays, and so does the device it is on; called again, it goes on. */
struct failed_call endpoint_close(struct endpoint* e) {
  struct failed_call failed = {NULL, 0};
  const int cq = e->cq ? ibv_destroy_cq(e->cq) : 0;
  const int pd = e->pd ? ibv_dealloc_pd(e->pd) : 0;
  if (!cq) e->cq = NULL;
  if (!pd) e->pd = NULL;
  if (!cq && !pd) {
    ibv_close_device(e->context); /* returns 0, whatever happens */
    return failed;
  }
  failed.name = cq ? "ibv_destroy_cq" : "ibv_dealloc_pd";
  failed.code = cq ? cq : pd;
  return failed;
}
