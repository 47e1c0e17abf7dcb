// Owners for the raw objects of a probe. Not the toolkit's: nothing of it may be in the way here.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace conformance {

struct releaser {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
  void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
  void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
  void operator()(ibv_mw* mw) const { ibv_dealloc_mw(mw); }
  void operator()(ibv_comp_channel* channel) const { ibv_destroy_comp_channel(channel); }
  void operator()(ibv_cq* cq) const { ibv_destroy_cq(cq); }
  void operator()(ibv_qp* qp) const { ibv_destroy_qp(qp); }
  void operator()(ibv_srq* srq) const { ibv_destroy_srq(srq); }
  void operator()(ibv_ah* ah) const { ibv_destroy_ah(ah); }
};

template <class T>
using owned = std::unique_ptr<T, releaser>;

template <class T>
owned<T> own(T* object) {
  return owned<T>(object);
}

}  // namespace conformance
