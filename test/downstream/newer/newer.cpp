// Compiled against what was installed where newer/infiniband/verbs.h was found: every family of
// optional_verbs.hpp is there.
#include <ibvxx/ibvxx.hpp>

using ibvxx::alloc_buf, ibvxx::alloc_dmah, ibvxx::create_comp_cntr, ibvxx::dm_export_dmabuf_fd,
    ibvxx::export_buf_dmabuf_fd, ibvxx::query_port_speed, ibvxx::reg_mr_ex;
