#include "core/ledger.hpp"

#include <infiniband/verbs.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace ibvxx::shim {
namespace {

/// Makes the object of a link the youngest child of a parent.
void attach(parent_link& link, record& parent) noexcept {
  link.previous = parent.last_child;
  link.next = nullptr;
  (parent.last_child ? parent.last_child->next : parent.first_child) = &link;
  parent.last_child = &link;
  ++parent.children;
}

/// The object of a link is no live child of the parent any more.
void detach(const parent_link& link) noexcept {
  record& parent = *link.parent;
  (link.previous ? link.previous->next : parent.first_child) = link.next;
  (link.next ? link.next->previous : parent.last_child) = link.previous;
  --parent.children;
}

}  // namespace

const char* name(object_kind kind) noexcept {
  switch (kind) {
    case object_kind::device_list:
      return "device list";
    case object_kind::context:
      return "context";
    case object_kind::pd:
      return "PD";
    case object_kind::mr:
      return "MR";
    case object_kind::comp_channel:
      return "completion channel";
    case object_kind::cq:
      return "CQ";
    case object_kind::td:
      return "thread domain";
    case object_kind::xrcd:
      return "XRC domain";
    case object_kind::mw:
      return "memory window";
    case object_kind::dm:
      return "device memory";
    case object_kind::qp:
      return "QP";
    case object_kind::srq:
      return "SRQ";
    case object_kind::ah:
      return "AH";
    case object_kind::wq:
      return "WQ";
    case object_kind::rwq_ind_table:
      return "indirection table";
    case object_kind::flow:
      return "flow";
    case object_kind::flow_action:
      return "flow action";
    case object_kind::counters:
      return "counters";
    case object_kind::multicast_membership:
      return "multicast membership";
    case object_kind::descriptor:
      return "descriptor";
  }
  return "?";
}

std::string object_title::text() const {
  if (number_ == 0 && kind_ != object_kind::descriptor) return {};
  if (kind_ == object_kind::descriptor) return "descriptor " + std::to_string(number_);
  std::string text = std::string(name(kind_)) + "#" + std::to_string(number_);
  if (device_) text += " of " + *device_;
  return text;
}

std::string origin(const record& object) {
  return std::string("made by ") + name(object.maker) + " (call " + std::to_string(object.made_by) +
         ")";
}

const std::string* ledger::name_of(std::string_view device) {
  if (device.empty()) return nullptr;
  const auto known = devices_.find(device);
  return known != devices_.end() ? &*known : &*devices_.emplace(device).first;
}

record& ledger::append(object_kind kind, const void* handle, const object_title& title, verb maker,
                       std::uint64_t made_by) {
  std::list<record>& alive = live_[static_cast<std::size_t>(kind)];
  record& object = alive.emplace_back();
  object.place = std::prev(alive.end());
  object.kind = kind;
  object.handle = handle;
  object.title = title;
  object.maker = maker;
  object.made_by = made_by;
  object.serial = ++created_;
  if (call_stacks_) object.made_at = capture_call_stack();
  return object;
}

record& ledger::add(object_kind kind, const void* handle, std::shared_ptr<void> storage,
                    std::string_view device, verb maker, std::uint64_t made_by,
                    std::span<record* const> parents) {
  record& object =
      append(kind, handle, {kind, ++made_[static_cast<std::size_t>(kind)], name_of(device)}, maker,
             made_by);
  object.storage = std::move(storage);
  object.parents.reserve(parents.size());  // links must not move
  for (record* const parent : parents) {
    // A parent that was named before has this object as its youngest child.
    if (!parent || (parent->last_child && parent->last_child->child == &object)) continue;
    parent_link& link = object.parents.emplace_back(parent_link{parent, &object});
    attach(link, *parent);
    ++parent->users;
  }
  if (!object.parents.empty()) object.lost = object.parents.front().parent->lost;
  own_descriptors(object);
  by_handle_[handle] = &object;
  return object;
}

record& ledger::add_descriptor(int fd, verb maker, std::uint64_t made_by) {
  record& object =
      append(object_kind::descriptor, nullptr,
             {object_kind::descriptor, static_cast<std::uint64_t>(fd), nullptr}, maker, made_by);
  object.descriptors[0] = fd;
  by_descriptor_[fd] = &object;
  return object;
}

void ledger::own_descriptors(record& object) {
  // The fields of verbs.h, which real objects have as well.
  if (object.kind == object_kind::comp_channel) {
    object.descriptors = {static_cast<const ibv_comp_channel*>(object.handle)->fd, -1};
  } else if (object.kind == object_kind::context) {
    const auto& context = *static_cast<const ibv_context*>(object.handle);
    object.descriptors = {context.async_fd, context.cmd_fd};
  }
  for (const int fd : object.descriptors)
    if (fd != -1) owners_[fd] = &object;
}

record* ledger::find(const void* handle) const noexcept {
  const auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : found->second;
}

record* ledger::find_descriptor(int fd) const noexcept {
  const auto found = by_descriptor_.find(fd);
  return found == by_descriptor_.end() ? nullptr : found->second;
}

const record* ledger::owner_of_descriptor(int fd) const noexcept {
  const auto found = owners_.find(fd);
  return found == owners_.end() ? nullptr : found->second;
}

void ledger::index(record& object, std::uint64_t key) {
  // Equal keys are in order of insertion, which is that of creation.
  object.indexed = by_key_.emplace(key, &object);
  object.has_index = true;
}

void ledger::adopt(record& object, record& from, record& to) {
  if (!object.live) return;  // another thread destroyed it meanwhile
  for (parent_link& link : object.parents) {
    if (link.parent != &from) continue;
    detach(link);
    link.parent = &to;
    attach(link, to);
    ++to.users;
    release(from);
    return;
  }
}

void ledger::keep(record& object, record& used) {
  object.kept.push_back(&used);
  ++used.users;
}

void ledger::retire(record& object, std::uint64_t gone_by) noexcept {
  object.live = false;
  object.gone_by = gone_by;
  if (call_stacks_) object.gone_at = capture_call_stack();
  if (object.live_counts) --*object.live_counts;
  for (parent_link& link : object.parents) detach(link);
  if (std::exchange(object.has_index, false)) by_key_.erase(object.indexed);
  if (object.kind != object_kind::descriptor)
    for (const int fd : object.descriptors)
      if (const auto own = owners_.find(fd); own != owners_.end() && own->second == &object)
        owners_.erase(own);
  destroyed_.splice(destroyed_.end(), live_[static_cast<std::size_t>(object.kind)], object.place);
  forget_some();
}

void ledger::forget_some() noexcept {
  while (destroyed_.size() > remembered) {
    record& oldest = destroyed_.front();
    if (oldest.users == 0) {
      erase(oldest);
      continue;
    }
    oldest.aside = true;
    aside_.splice(aside_.end(), destroyed_, oldest.place);
  }
}

void ledger::release(record& object) noexcept {
  if (--object.users == 0 && object.aside) erase(object);
}

void ledger::erase(record& object) noexcept {
  // The handle or the descriptor may be another object's by now.
  if (object.kind == object_kind::descriptor) {
    const auto known = by_descriptor_.find(object.descriptors[0]);
    if (known != by_descriptor_.end() && known->second == &object) by_descriptor_.erase(known);
  } else if (const auto known = by_handle_.find(object.handle);
             known != by_handle_.end() && known->second == &object) {
    by_handle_.erase(known);
  }
  // What it referred to outlives it, since its memory may refer to theirs.
  std::list<record> ending;
  std::list<record>& from = object.aside ? aside_ : destroyed_;
  ending.splice(ending.end(), from, object.place);
  object.storage.reset();
  for (const parent_link& link : object.parents) release(*link.parent);
  for (record* const used : object.kept) release(*used);
}

std::size_t ledger::live() const noexcept {
  std::size_t sum = 0;
  for (const std::list<record>& kind : live_) sum += kind.size();
  return sum;
}

std::vector<const record*> ledger::all_live() const {
  std::vector<const record*> all;
  all.reserve(live());
  for (const std::list<record>& kind : live_)
    for (const record& object : kind) all.push_back(&object);
  std::sort(all.begin(), all.end(),
            [](const record* a, const record* b) { return a->serial < b->serial; });
  return all;
}

std::string ledger::children_of(const record& parent) const {
  constexpr unsigned most = 16;
  std::string list;
  unsigned named = 0;
  for (const parent_link* link = parent.first_child; link && named < most; link = link->next)
    list += (named++ == 0 ? "" : ", ") + link->child->title;
  if (parent.children > named) list += " and " + std::to_string(parent.children - named) + " more";
  return list;
}

void ledger::find_leaks(finding_log& findings) const {
  const std::vector<const record*> left = all_live();
  for (auto one = left.rbegin(); one != left.rend(); ++one) {
    const record& object = **one;
    const bool descriptor = object.kind == object_kind::descriptor;
    findings.add(descriptor ? finding_kind::descriptor_leak : finding_kind::leak,
                 object.title + ", " + origin(object) +
                     (descriptor ? ", was never closed" : ", was never destroyed"),
                 &object);
  }
}

std::vector<const record*> ledger::unexcused() const {
  std::vector<const record*> left = all_live();
  std::unordered_set<const record*> excused;
  // Every ancestor of an object whose destroy was made to fail.
  std::vector<const record*> next;
  for (const record* object : left)
    if (object->destroy_injected) next.push_back(object);
  while (!next.empty()) {
    const record* const object = next.back();
    next.pop_back();
    if (!excused.insert(object).second) continue;
    for (const parent_link& link : object->parents) next.push_back(link.parent);
  }
  std::erase_if(left, [&excused](const record* object) { return excused.contains(object); });
  return left;
}

}  // namespace ibvxx::shim
