#include "core/ledger.hpp"

#include <algorithm>
#include <set>

namespace ibvxx::shim {

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

std::string origin(const record& object) {
  return std::string("made by ") + name(object.maker) + " (call " + std::to_string(object.made_by) +
         ")";
}

record& ledger::append(record&& made) {
  const auto kind = static_cast<std::size_t>(made.kind);
  ++live_[kind];
  for (record* parent : made.parents) ++parent->children;
  if (call_stacks_) made.made_at = capture_call_stack();
  return records_.emplace_back(std::move(made));
}

record& ledger::add(object_kind kind, const void* handle, std::shared_ptr<void> storage,
                    const std::string& device, verb maker, std::uint64_t made_by,
                    std::span<record* const> parents) {
  record made{};
  made.kind = kind;
  made.handle = handle;
  made.title =
      std::string(name(kind)) + "#" + std::to_string(++made_[static_cast<std::size_t>(kind)]);
  if (!device.empty()) made.title += " of " + device;
  made.maker = maker;
  made.made_by = made_by;
  made.storage = std::move(storage);
  for (record* parent : parents)
    if (parent && std::find(made.parents.begin(), made.parents.end(), parent) == made.parents.end())
      made.parents.push_back(parent);
  if (!made.parents.empty()) made.lost = made.parents.front()->lost;
  record& object = append(std::move(made));
  by_handle_[handle] = &object;
  return object;
}

record& ledger::add_descriptor(int fd, verb maker, std::uint64_t made_by) {
  record made{};
  made.kind = object_kind::descriptor;
  made.title = "descriptor " + std::to_string(fd);
  made.maker = maker;
  made.made_by = made_by;
  record& object = append(std::move(made));
  by_descriptor_[fd] = &object;
  return object;
}

record* ledger::find(const void* handle) const noexcept {
  const auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : found->second;
}

record* ledger::find_descriptor(int fd) const noexcept {
  const auto found = by_descriptor_.find(fd);
  return found == by_descriptor_.end() ? nullptr : found->second;
}

void ledger::adopt(record& object, record& from, record& to) {
  std::replace(object.parents.begin(), object.parents.end(), &from, &to);
  --from.children;
  ++to.children;
}

void ledger::retire(record& object, std::uint64_t gone_by) noexcept {
  object.live = false;
  object.gone_by = gone_by;
  if (call_stacks_) object.gone_at = capture_call_stack();
  --live_[static_cast<std::size_t>(object.kind)];
  if (object.live_counts) --*object.live_counts;
  for (record* parent : object.parents) --parent->children;
}

void ledger::retire_tree(record& root, std::uint64_t gone_by) noexcept {
  // The youngest first, so that children are retired before their parents.
  for (auto object = records_.rbegin(); object != records_.rend(); ++object)
    if (object->live &&
        std::find(object->parents.begin(), object->parents.end(), &root) != object->parents.end())
      retire_tree(*object, gone_by);
  retire(root, gone_by);
}

std::size_t ledger::live() const noexcept {
  std::size_t sum = 0;
  for (const std::size_t count : live_) sum += count;
  return sum;
}

std::string ledger::children_of(const record& parent) const {
  std::string list;
  for (const record& object : records_) {
    if (!object.live ||
        std::find(object.parents.begin(), object.parents.end(), &parent) == object.parents.end())
      continue;
    list += (list.empty() ? "" : ", ") + object.title;
  }
  return list;
}

void ledger::find_leaks(finding_log& findings) const {
  for (auto object = records_.rbegin(); object != records_.rend(); ++object) {
    if (!object->live) continue;
    const bool descriptor = object->kind == object_kind::descriptor;
    findings.add(descriptor ? finding_kind::descriptor_leak : finding_kind::leak,
                 object->title + ", " + origin(*object) +
                     (descriptor ? ", was never closed" : ", was never destroyed"),
                 &*object);
  }
}

std::vector<const record*> ledger::unexcused() const {
  std::set<const record*> excused;
  // Children come after their parents, so one pass from the youngest reaches every ancestor.
  for (auto object = records_.rbegin(); object != records_.rend(); ++object) {
    if (!object->live || !(object->destroy_injected || excused.contains(&*object))) continue;
    excused.insert(&*object);
    excused.insert(object->parents.begin(), object->parents.end());
  }
  std::vector<const record*> left;
  for (const record& object : records_)
    if (object.live && !excused.contains(&object)) left.push_back(&object);
  return left;
}

}  // namespace ibvxx::shim
