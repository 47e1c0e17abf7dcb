#include <ibvxx/shim/session.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "data_path.hpp"
#include "engine.hpp"
#include "sim_device.hpp"
#include "sim_events.hpp"
#include "verb_facts.hpp"

namespace ibvxx::shim {
namespace {

[[nodiscard]] sim_device& find_device(session_state& state, const std::string& name) {
  for (const auto& device : state.devices)
    if (device->described.name == name) return *device;
  throw std::logic_error("shim: there is no simulated device '" + name + "'");
}

[[nodiscard]] port_description& find_port(sim_device& device, int port) {
  auto& ports = device.described.ports;
  if (port < 1 || static_cast<std::size_t>(port) > ports.size())
    throw std::logic_error("shim: device '" + device.described.name + "' has no port " +
                           std::to_string(port));
  return ports[static_cast<std::size_t>(port) - 1];
}

[[nodiscard]] sim_cq& find_cq(session_state& state, const ibv_cq* cq) {
  const record* object = state.objects.find(cq);
  if (!object || !object->live || object->kind != object_kind::cq)
    throw std::logic_error("shim: that is no live CQ of this session");
  return *static_cast<sim_cq*>(object->storage.get());
}

[[nodiscard]] ibv_async_event port_event(ibv_event_type type, int port) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  return event;
}

}  // namespace

session::session(const simulated& machine) : exceptions_(std::uncaught_exceptions()) {
  const engine::unseen quiet;
  auto state = std::make_unique<session_state>();
  state->devices = make_devices(machine);
  engine::begin(std::move(state));
}

session::~session() {
  if (finished_) return;
  const std::vector<finding> all = finish();
  if (all.empty()) return;
  for (const finding& one : all)
    std::fprintf(stderr, "ibvxx-shim: %s: %s\n", name(one.kind), one.text.c_str());
  if (std::uncaught_exceptions() > exceptions_) return;
  std::fprintf(
      stderr,
      "ibvxx-shim: the session ended with findings that nobody looked at; finish() returns them\n");
  std::abort();
}

fault session::at(verb call) {
  if (!facts_of(call).seen)
    throw std::logic_error(std::string("shim: ") + name(call) +
                           " is not intercepted: no rule for it could fire");
  return fault(call);
}

fault session::fail(verb call) {
  switch (call) {
    case verb::free_device_list:
    case verb::unimport_pd:
    case verb::unimport_mr:
    case verb::unimport_dm:
    case verb::is_fork_initialized:
    case verb::query_qp_data_in_order:
    case verb::end_poll:
    case verb::wr_start:
    case verb::wr_abort:
      throw std::logic_error(std::string("shim: ") + name(call) + " cannot fail");
    default:
      return at(call);
  }
}

void session::forgive() {
  const engine::unseen quiet;
  engine::look().state.plan.clear();
}

std::uint64_t session::calls(verb call) const {
  const engine::unseen quiet;
  return engine::look().state.counts[static_cast<std::size_t>(call)];
}

std::uint64_t session::calls() const {
  const engine::unseen quiet;
  return engine::look().state.calls;
}

std::vector<call_record> session::trace() const {
  const engine::unseen quiet;
  const auto seen = engine::look();
  std::vector<call_record> calls;
  calls.reserve(seen.state.trace.size());
  for (const traced_call& one : seen.state.trace)
    calls.push_back({one.index, one.call, one.object,
                     one.subject ? one.subject->title : std::string(), one.injected});
  return calls;
}

std::size_t session::live() const {
  const engine::unseen quiet;
  return engine::look().state.objects.live();
}

std::size_t session::live(object_kind kind) const {
  const engine::unseen quiet;
  return engine::look().state.objects.live(kind);
}

int session::completion_vector(const ibv_cq* cq) const {
  const engine::unseen quiet;
  return find_cq(engine::look().state, cq).completion_vector;
}

std::vector<finding> session::findings() const {
  const engine::unseen quiet;
  return engine::look().state.objects.findings();
}

std::vector<finding> session::finish() {
  const engine::unseen quiet;
  if (finished_) throw std::logic_error("shim: the session has ended");
  finished_ = true;
  std::vector<finding> all;
  {
    const auto seen = engine::look();
    seen.state.objects.find_leaks();
    for (const fault_rule& rule : seen.state.plan.rules())
      if (rule.fired == 0)
        seen.state.objects.found(finding_kind::unfired_rule, describe(rule) + " never fired");
    all = seen.state.objects.findings();
  }
  engine::end();
  return all;
}

void session::set_port_state(const std::string& device, int port, ibv_port_state state) {
  const engine::unseen quiet;
  const auto seen = engine::look();
  sim_device& changed = find_device(seen.state, device);
  ibv_port_state& current = find_port(changed, port).state;
  const bool was_active = std::exchange(current, state) == IBV_PORT_ACTIVE;
  if (was_active != (state == IBV_PORT_ACTIVE))
    raise_async_event(seen.state, changed,
                      port_event(was_active ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE, port));
  retry_waiting(seen.state);
}

void session::set_gid(const std::string& device, int port, int index, const gid_slot& slot) {
  const engine::unseen quiet;
  const auto seen = engine::look();
  sim_device& changed = find_device(seen.state, device);
  port_description& described = find_port(changed, port);
  if (index < 0 || index >= described.gid_table_size)
    throw std::logic_error("shim: GID index " + std::to_string(index) + " is outside 0.." +
                           std::to_string(described.gid_table_size - 1));
  const auto position = static_cast<std::size_t>(index);
  if (described.gids.size() <= position) described.gids.resize(position + 1);
  described.gids[position] = slot;
  raise_async_event(seen.state, changed, port_event(IBV_EVENT_GID_CHANGE, port));
  retry_waiting(seen.state);
}

void session::raise(const std::string& device, ibv_event_type type, int port) {
  const engine::unseen quiet;
  const auto seen = engine::look();
  sim_device& where = find_device(seen.state, device);
  switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      static_cast<void>(find_port(where, port));
      raise_async_event(seen.state, where, port_event(type, port));
      return;
    default:
      throw std::logic_error("shim: event type " + std::to_string(type) + " is no port's");
  }
}

void session::raise_cq_error(ibv_cq* cq) {
  const engine::unseen quiet;
  const auto seen = engine::look();
  sim_cq& queue = find_cq(seen.state, cq);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = cq;
  raise_async_event(*queue.context, event);
}

void session::raise_spurious_event(ibv_cq* cq) {
  const engine::unseen quiet;
  const auto seen = engine::look();
  sim_cq& queue = find_cq(seen.state, cq);
  if (!queue.channel) throw std::logic_error("shim: the CQ has no channel to raise an event on");
  raise_cq_event(queue);
}

void session::unplug(const std::string& device) {
  const engine::unseen quiet;
  const auto seen = engine::look();
  sim_device& gone = find_device(seen.state, device);
  if (std::exchange(gone.lost, true))
    throw std::logic_error("shim: device '" + device + "' was unplugged already");
  ibv_async_event event{};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  raise_async_event(seen.state, gone, event);
  retry_waiting(seen.state);
}

fault fault::nth(std::uint64_t n) const {
  if (n == 0) throw std::logic_error("shim: fault.nth(0): calls count from 1");
  fault next = *this;
  next.nth_ = n;
  return next;
}

fault fault::times(std::uint64_t count) const {
  if (count == 0) throw std::logic_error("shim: fault.times(0) would inject nothing");
  fault next = *this;
  next.times_ = count;
  return next;
}

fault fault::persistently() const {
  return times(UINT64_MAX);
}

fault fault::on(const void* object) const {
  if (!object) throw std::logic_error("shim: fault.on(nullptr) would match nothing");
  fault next = *this;
  next.object_ = object;
  return next;
}

fault fault::on_this_thread() const {
  fault next = *this;
  next.this_thread_ = true;
  return next;
}

void fault::with(int code) const {
  if (code <= 0 || code > 4095)
    throw std::logic_error("shim: fault.with(" + std::to_string(code) +
                           "): an errno is in 1..4095");
  if (call_ == verb::allocate && code != ENOMEM)
    throw std::logic_error("shim: an allocation fails with ENOMEM only");
  put_in_force(code, nullptr);
}

void fault::run(std::function<void()> action) const {
  if (!action) throw std::logic_error("shim: fault.run() without an action would do nothing");
  put_in_force(0, std::move(action));
}

void fault::put_in_force(int code, std::function<void()> action) const {
  const engine::unseen quiet;
  fault_rule rule;
  rule.call = call_;
  rule.nth = nth_;
  rule.times = times_;
  rule.object = object_;
  if (this_thread_) rule.thread = std::this_thread::get_id();
  rule.code = code;
  rule.action = std::move(action);
  engine::look().state.plan.add(std::move(rule));
}

}  // namespace ibvxx::shim
