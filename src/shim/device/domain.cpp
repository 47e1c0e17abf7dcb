#include "device/domain.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/thread_watch.hpp"
#include "device/object.hpp"

namespace ibvxx::shim {
namespace {

/// The key of XRC domains that are opened through a file. Two may have the same.
[[nodiscard]] std::uint64_t file_key(const sim_xrcd& domain) noexcept {
  return static_cast<std::uint64_t>(object_kind::xrcd) << 56 ^ domain.device << 32 ^ domain.inode;
}

}  // namespace

namespace device {

ibv_td* alloc_td(call& c, ibv_context* context, ibv_td_init_attr* attributes) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (!owner->offers().thread_domains || (attributes && attributes->comp_mask != 0))
    return c.refuse_pointer(EOPNOTSUPP);
  auto made = std::make_shared<sim_td>();
  made->context = owner;
  made->verbs.context = context;
  record_object(c, made, &made->verbs, *owner->device, {c.record_of(context)});
  return &made->verbs;
}

int dealloc_td(call& c, ibv_td* td) {
  return c.ending<sim_td>(td) ? c.concluded(c.destroy(td)) : c.refuse_code();
}

ibv_pd* alloc_parent_domain(call& c, ibv_context* context,
                            ibv_parent_domain_init_attr* attributes) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(attributes, "attr")) return c.refuse_pointer();
  if (!owner->offers().parent_domains) return c.refuse_pointer(EOPNOTSUPP);
  // Checks of mlx5 (rdma-core 44, providers/mlx5/verbs.c).
  constexpr unsigned known =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if ((attributes->comp_mask & ~known) != 0) return c.refuse_pointer(EINVAL);
  auto* base = c.use<sim_pd>(attributes->pd);
  if (!base || (attributes->td && !c.use<sim_td>(attributes->td))) return c.refuse_pointer();
  auto made = std::make_shared<sim_pd>();
  made->context = owner;
  made->domain = base->domain;
  made->thread_scope = attributes->td ? attributes->td : base->thread_scope;
  if (made->thread_scope) watched_threads().turn(true);
  made->verbs.context = context;
  made->verbs.handle = base->verbs.handle;
  record_object(c, made, &made->verbs, *owner->device,
                {c.record_of(context), c.record_of(attributes->pd), c.record_of(attributes->td)});
  return &made->verbs;
}

ibv_xrcd* open_xrcd(call& c, ibv_context* context, ibv_xrcd_init_attr* attributes) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing() || !c.given(attributes, "attr")) return c.refuse_pointer();
  if (!owner->offers().xrc) return c.refuse_pointer(EOPNOTSUPP);
  constexpr unsigned needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if (attributes->comp_mask != needed) return c.refuse_pointer(EINVAL);
  if ((attributes->oflags & ~(O_CREAT | O_EXCL)) != 0) return c.refuse_pointer(EINVAL);
  auto made = std::make_shared<sim_xrcd>();
  record* shared = nullptr;
  made->context = owner;
  made->verbs.context = context;
  if (attributes->fd == -1) {
    // A private domain can only be new (ib_uverbs_open_xrcd).
    if ((attributes->oflags & O_CREAT) == 0) return c.refuse_pointer(EINVAL);
  } else {
    struct stat file {};
    if (::fstat(attributes->fd, &file) != 0) return c.refuse_pointer(EBADF);
    made->device = file.st_dev;
    made->inode = file.st_ino;
    shared = c.state().objects.find_by_key(file_key(*made), [&](const record& object) {
      if (object.kind != object_kind::xrcd) return false;
      const auto& other = object_of<sim_xrcd>(object);
      return other.inode == made->inode && other.device == made->device &&
             other.context->device == owner->device;
    });
    if (!shared && (attributes->oflags & O_CREAT) == 0) return c.refuse_pointer(EAGAIN);
    if (shared && (attributes->oflags & O_EXCL) != 0) return c.refuse_pointer(EINVAL);
    if (shared) made->domain = object_of<sim_xrcd>(*shared).domain;
  }
  record& object = record_object(c, made, &made->verbs, *owner->device, {c.record_of(context)});
  if (made->inode != 0) c.state().objects.index(object, file_key(*made));
  if (shared) c.state().objects.keep(object, *shared);  // its address is the domain's identity
  return &made->verbs;
}

int close_xrcd(call& c, ibv_xrcd* xrcd) {
  return c.ending<sim_xrcd>(xrcd) ? c.concluded(c.destroy(xrcd)) : c.refuse_code();
}

ibv_pd* alloc_pd(call& c, ibv_context* context) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (is_full(*owner->device, object_kind::pd, owner->limits().max_pd))
    return c.refuse_pointer(owner->behaviour().too_many_objects);
  auto made = std::make_shared<sim_pd>();
  made->context = owner;
  made->verbs.context = context;
  made->verbs.handle = handle_of(c);
  record_object(c, made, &made->verbs, *owner->device, {c.record_of(context)});
  return &made->verbs;
}

int dealloc_pd(call& c, ibv_pd* pd) {
  auto* ending = c.ending<sim_pd>(pd);
  if (!ending) return c.refuse_code();
  if (ending->imported) {
    c.found(finding_kind::wrong_kind, c.here() + " on " + c.record_of(pd)->title +
                                          ", which was imported: it is unimported, not destroyed");
    return c.refuse_code();
  }
  return c.concluded(c.destroy(pd));
}

ibv_pd* import_pd(call& c, ibv_context* context, std::uint32_t handle) {
  auto* owner = c.use<sim_context>(context);
  if (!owner || c.failing()) return c.refuse_pointer();
  if (!owner->offers().imports) return c.refuse_pointer(EOPNOTSUPP);
  record* const original = find_handle<sim_pd>(c, *owner->device, handle);
  if (!original) return c.refuse_pointer(ENOENT);
  auto made = std::make_shared<sim_pd>();
  made->context = owner;
  made->domain = object_of<sim_pd>(*original).domain;
  made->imported = true;
  made->verbs.context = context;
  made->verbs.handle = handle;
  record& object = record_object(c, made, &made->verbs, *owner->device, {c.record_of(context)});
  c.state().objects.keep(object, *original);  // its address is the domain's identity
  return &made->verbs;
}

void unimport_pd(call& c, ibv_pd* pd) {
  auto* ending = c.ending<sim_pd>(pd);
  if (!ending) return;
  if (!ending->imported)
    c.found(finding_kind::wrong_kind,
            c.here() + " on " + c.record_of(pd)->title + ", which was allocated, not imported");
  else
    c.destroy_regardless(pd);
}

}  // namespace device
}  // namespace ibvxx::shim
