/*
 * As much of a verbs.h newer than the system's as ibvxx/optional_verbs.hpp speaks of, so that the build
 * finds it: the meson.build of ibvxx looks for it, and what is installed passes it on. Only
 * declared: nothing is linked.
 */
#ifndef NEWER_VERBS_H
#define NEWER_VERBS_H

#include_next <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_dmah {
  struct ibv_context* context;
};
struct ibv_dmah_init_attr {
  uint32_t comp_mask;
  uint32_t cpu_id;
  uint8_t ph;
};
struct ibv_dmah* ibv_alloc_dmah(struct ibv_context*, struct ibv_dmah_init_attr*);
int ibv_dealloc_dmah(struct ibv_dmah*);

struct ibv_buf;
enum {
  IBV_REG_MR_MASK_ADDR = 1,
  IBV_REG_MR_MASK_FD = 2,
  IBV_REG_MR_MASK_DMAH = 4,
  IBV_REG_MR_MASK_BUF = 8
};
struct ibv_mr_init_attr {
  size_t length;
  int access;
  uint64_t comp_mask;
  void* addr;
  int fd;
  struct ibv_dmah* dmah;
  struct ibv_buf* buf;
};
struct ibv_mr* ibv_reg_mr_ex(struct ibv_pd*, struct ibv_mr_init_attr*);

int ibv_dm_export_dmabuf_fd(struct ibv_dm*);
int ibv_query_port_speed(struct ibv_context*, uint32_t port, uint64_t* speed);

void* ibv_alloc_buf(struct ibv_pd*, size_t, struct ibv_buf**);
void ibv_free_buf(struct ibv_buf*);
struct ibv_mr* ibv_reg_buf_mr(struct ibv_pd*, struct ibv_buf*, void*, size_t, int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf*);

struct ibv_comp_cntr {
  struct ibv_context* context;
};
struct ibv_comp_cntr_caps {
  uint64_t max_value;
};
struct ibv_comp_cntr_init_attr {
  int type;
  uint32_t flags;
};
struct ibv_qp_attach_comp_cntr_attr {
  uint32_t op_mask;
};
int ibv_query_comp_cntr_caps(struct ibv_context*, struct ibv_comp_cntr_caps*);
struct ibv_comp_cntr* ibv_create_comp_cntr(struct ibv_context*, struct ibv_comp_cntr_init_attr*);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr*);
int ibv_qp_attach_comp_cntr(struct ibv_qp*, struct ibv_comp_cntr*,
                            struct ibv_qp_attach_comp_cntr_attr*);
int ibv_set_comp_cntr(struct ibv_comp_cntr*, uint64_t);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr*, uint64_t);
int ibv_inc_comp_cntr(struct ibv_comp_cntr*, uint64_t);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr*, uint64_t);
int ibv_read_comp_cntr(struct ibv_comp_cntr*, uint64_t*);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr*, uint64_t*);

#ifdef __cplusplus
}
#endif

#endif
