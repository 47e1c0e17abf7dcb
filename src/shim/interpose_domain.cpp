// Protection domains.
#include "interpose.hpp"
#include "sim_objects.hpp"

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  call c(verb::alloc_pd, context);
  if (c.forwarded()) return forward<ibv_pd*>("ibv_alloc_pd", context);
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_pointer();
  auto made = std::make_shared<sim_pd>();
  made->context = owner;
  made->verbs.context = context;
  made->verbs.handle = static_cast<std::uint32_t>(c.index());
  c.add(made, &made->verbs, owner->device->described.name, {c.record_of(context)});
  return &made->verbs;
}

int ibv_dealloc_pd(ibv_pd* pd) {
  call c(verb::dealloc_pd, pd);
  if (c.forwarded()) return forward<int>("ibv_dealloc_pd", pd);
  if (!c.ending<sim_pd>(pd)) return c.refuse_code();
  return c.destroy(pd);
}

}  // extern "C"
