#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

struct endpoint {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
};

/* What went wrong first: the verb's name and its errno; NULL and 0 for success. */
struct failed_call {
  const char* name;
  int code;
};

/* Nothing is left open by an endpoint_open that failed. */
struct failed_call endpoint_open(struct endpoint* e);
struct failed_call endpoint_close(struct endpoint* e);

#ifdef __cplusplus
}
#endif

#endif
