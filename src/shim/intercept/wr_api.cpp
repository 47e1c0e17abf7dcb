#include "intercept/wr_api.hpp"

#include "device/wr_api.hpp"

#include "device/queue_pair.hpp"
#include "forward/recorded_verbs.hpp"
#include "intercept/intercept.hpp"

namespace ibvxx::shim {
namespace {

void wr_start(ibv_qp_ex* handle) {
  return intercepted(verb::wr_start, &object_operations::wr_start, &device::wr_start, handle);
}

void wr_abort(ibv_qp_ex* handle) {
  return intercepted(verb::wr_abort, &object_operations::wr_abort, &device::wr_abort, handle);
}

int wr_complete(ibv_qp_ex* handle) {
  return intercepted(verb::wr_complete, &real::wr_complete, &device::wr_complete, handle);
}

}  // namespace

void intercept_qp(call& c, ibv_qp* made) {
  if (c.forwarded()) {
    ibv_qp_ex* qp = nullptr;
    {
      const call::released running(c);
      qp = call_real<ibv_qp_ex*>("ibv_qp_to_qp_ex", made);
    }
    if (!qp || !qp->wr_start) return;  // not extended, or without operations
    remember_operations(qp, {.wr_start = replace(qp->wr_start, &wr_start),
                             .wr_complete = replace(qp->wr_complete, &wr_complete),
                             .wr_abort = replace(qp->wr_abort, &wr_abort)});
    return;
  }
  ibv_qp_ex& qp = c.use<sim_qp>(made)->extended;
  if (!qp.wr_set_sge) return;  // without operations
  qp.wr_start = &wr_start;
  qp.wr_complete = &wr_complete;
  qp.wr_abort = &wr_abort;
}

}  // namespace ibvxx::shim
