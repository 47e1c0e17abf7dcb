#include <ibvxx/shim/session.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/engine.hpp"
#include "device/completion_queue.hpp"
#include "device/data_path/completion.hpp"
#include "device/data_path/send_queue.hpp"
#include "device/events.hpp"
#include "device/machine.hpp"
#include "device/queue_pair.hpp"
#include "device/receive.hpp"
#include "device/work_queue.hpp"
#include "session/last_findings.hpp"
#include "session/session_lookup.hpp"

namespace ibvxx::shim {
namespace {

[[nodiscard]] sim_device& device_named(session_state& state, const std::string& name) {
  if (sim_device* found = device_called(state, name)) return *found;
  throw std::logic_error("shim: there is no simulated device '" + name + "'");
}

[[nodiscard]] port_description& find_port(sim_device& device, int port) {
  auto& ports = device.described.ports;
  if (port < 1 || static_cast<std::size_t>(port) > ports.size())
    throw std::logic_error("shim: device '" + device.described.name + "' has no port " +
                           std::to_string(port));
  return ports[static_cast<std::size_t>(port) - 1];
}

[[noreturn]] void refuse_event(ibv_event_type type, const char* whose) {
  throw std::logic_error("shim: event type " + std::to_string(type) + " is no " + whose);
}

[[nodiscard]] ibv_async_event port_event(ibv_event_type type, int port) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  return event;
}

}  // namespace

session::session(const simulated& machine, const session_options& options)
    : exceptions_(std::uncaught_exceptions()) {
  const engine::suppress_interception quiet;
  auto state = std::make_unique<session_state>();
  state->simulated = std::make_unique<shim::machine>(machine);
  state->apply(options);
  engine::begin(std::move(state));
  generation_ = engine::generation();
}

void session::begin_forwarding(const session_options& options) {
  const engine::suppress_interception quiet;
  auto state = std::make_unique<session_state>();
  state->apply(options);
  engine::begin(std::move(state));
  generation_ = engine::generation();
}

session::~session() {
  // Its session is no longer the one in force in the child of a fork.
  if (finished_ || generation_ != engine::generation()) return;
  const std::vector<finding> all = finish();
  if (all.empty()) return;
  write_findings(all);
  if (std::uncaught_exceptions() > exceptions_) return;
  std::fprintf(stderr,
               "ibvxx-shim: the session ended with findings that were not collected; finish() "
               "returns them\n");
  std::abort();
}

void session::clear_rules() {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  seen.state.plan.clear();
  seen.state.completions.clear_rules();
  seen.state.findings.clear_expectations();
}

void session::expect(finding_kind kind, std::string containing) {
  const engine::suppress_interception quiet;
  engine::lock_session().state.findings.expect(kind, std::move(containing));
}

void session::tolerate(finding_kind kind) {
  const engine::suppress_interception quiet;
  engine::lock_session().state.findings.tolerate(kind);
}

std::uint64_t session::calls(verb call) const {
  const engine::suppress_interception quiet;
  return engine::lock_session().state.counts[static_cast<std::size_t>(call)];
}

std::uint64_t session::calls() const {
  const engine::suppress_interception quiet;
  return engine::lock_session().state.calls;
}

std::vector<call_record> session::trace() const {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  std::vector<call_record> calls;
  calls.reserve(seen.state.trace.size());
  for (const traced_call& one : seen.state.trace)
    calls.push_back({one.index, one.call, one.object, one.subject, one.injected});
  return calls;
}

std::size_t session::live() const {
  const engine::suppress_interception quiet;
  return engine::lock_session().state.objects.live();
}

std::size_t session::live(object_kind kind) const {
  const engine::suppress_interception quiet;
  return engine::lock_session().state.objects.live(kind);
}

int session::completion_vector(const ibv_cq* cq) const {
  const engine::suppress_interception quiet;
  return find_live<sim_cq>(engine::lock_session().state, cq).completion_vector;
}

std::vector<finding> session::findings() const {
  const engine::suppress_interception quiet;
  return engine::lock_session().state.findings.all();
}

std::vector<finding> session::finish() {
  const engine::suppress_interception quiet;
  if (finished_) throw std::logic_error("shim: the session has ended");
  finished_ = true;
  std::vector<finding> all = find_last();
  engine::end();
  return all;
}

void session::set_port_state(const std::string& device, int port, ibv_port_state state) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_device& changed = device_named(seen.state, device);
  ibv_port_state& current = find_port(changed, port).state;
  const bool was_active = std::exchange(current, state) == IBV_PORT_ACTIVE;
  if (was_active != (state == IBV_PORT_ACTIVE))
    raise_async_event(seen.state, changed,
                      port_event(was_active ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE, port));
  retry_waiting(seen.state);
}

void session::set_gid(const std::string& device, int port, int index, const gid_slot& slot) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_device& changed = device_named(seen.state, device);
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
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_device& where = device_named(seen.state, device);
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
      refuse_event(type, "port's");
  }
}

void session::raise(const std::string& device, ibv_event_type type) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_device& where = device_named(seen.state, device);
  if (type != IBV_EVENT_DEVICE_FATAL)
    refuse_event(type, "device's: for a port's event, name the port");
  ibv_async_event event{};
  event.event_type = type;
  raise_async_event(seen.state, where, event);
}

void session::raise(const ibv_qp* qp, ibv_event_type type) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_qp& named = find_live<sim_qp>(seen.state, qp);
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      enter_error(seen.state, *named.original);
      break;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      if (!named.srq)
        throw std::logic_error("shim: a queue pair without an SRQ gets no QP_LAST_WQE_REACHED");
      break;
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
      break;
    default:
      refuse_event(type, "queue pair's");
  }
  raise_qp_event(named, type);
  retry_waiting(seen.state);
}

void session::raise(const ibv_srq* srq, ibv_event_type type) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_srq& named = find_live<sim_srq>(seen.state, srq);
  if (type != IBV_EVENT_SRQ_ERR && type != IBV_EVENT_SRQ_LIMIT_REACHED) refuse_event(type, "SRQ's");
  raise_srq_event(named, type);
}

void session::raise(const ibv_cq* cq, ibv_event_type type) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_cq& named = find_live<sim_cq>(seen.state, cq);
  if (type != IBV_EVENT_CQ_ERR) refuse_event(type, "CQ's");
  ibv_async_event event{};
  event.event_type = type;
  event.element.cq = &named.verbs;
  raise_async_event(*named.context, event);
}

void session::raise(const ibv_wq* wq, ibv_event_type type) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_wq& named = find_live<sim_wq>(seen.state, wq);
  if (type != IBV_EVENT_WQ_FATAL) refuse_event(type, "work queue's");
  named.state = IBV_WQS_ERR;
  ibv_async_event event{};
  event.event_type = type;
  event.element.wq = &named.verbs;
  raise_async_event(*named.context, event);
}

void session::raise_spurious_event(ibv_cq* cq) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_cq& queue = find_live<sim_cq>(seen.state, cq);
  if (!queue.channel) throw std::logic_error("shim: the CQ has no channel to raise an event on");
  raise_cq_event(queue);
}

void session::unplug(const std::string& device) {
  const engine::suppress_interception quiet;
  const auto seen = engine::lock_session();
  sim_device& gone = device_named(seen.state, device);
  if (gone.lost) throw std::logic_error("shim: device '" + device + "' was unplugged already");
  remove_device(seen.state, gone);
  retry_waiting(seen.state);
}

}  // namespace ibvxx::shim
