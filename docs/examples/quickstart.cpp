// ibvxx on one page: opens a context, shows what it owns, and releases it; moves data from one
// context to another; then fails every step of the first part in turn and shows that nothing is
// left. Without an RDMA device it runs on a simulated one.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ibvxx/format.hpp>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/shim.hpp>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

using namespace ibvxx;

namespace {

std::array<std::byte, 65536> buffer;

/// There is no clean-up code: where a step fails, the owners release what was made before.
result<rdma_context> open_and_register() {
  auto context = rdma_context::open({.comp_channels = 2, .cqs = 4, .cqe = 256});
  if (!context) return context;
  auto region = context->register_memory(std::span(buffer), IBV_ACCESS_LOCAL_WRITE);
  if (!region) return failure(region.error());
  return context;
}

template <class... T>
void print_row(const char* what, fmt::format_string<T...> format, T&&... values) {
  fmt::print("  {:<12}{}\n", what, fmt::format(format, std::forward<T>(values)...));
}

void print_inventory(const rdma_context& context) {
  const gid_candidate gid = context.gid();
  const context_inventory owned = context.owned();
  print_row("device", "{}", context.device()->device->name);
  print_row("port", "{}", context.port());
  print_row("state", "{}", context.state());
  print_row("GID", "{}, index {}, {}", gid.entry.gid, gid.entry.gid_index, gid.reason.c_str());
  print_row("PDs", "{}", owned.pds);
  print_row("channels", "{}", owned.channels);
  print_row("CQs", "{}, and {} for notifications", owned.cqs, owned.notification_cqs);
  print_row("registered", "{} bytes, {} region", context.registered_bytes(), owned.regions);
}

/// One end of a connection: a context, memory on it, and a queue pair.
struct endpoint {
  rdma_context context;
  std::span<char> memory;
  ibv_mr* region = nullptr;  // this and the queue pair belong to the context
  ibv_qp* qp = nullptr;
  qp_address address{};
};

result<endpoint> make_endpoint(std::span<char> memory, std::uint32_t psn) {
  auto context = rdma_context::open({.comp_channels = 1, .cqs = 1, .notification_cq = false});
  if (!context) return failure(context.error());
  auto region = context->register_memory(memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (!region) return failure(region.error());
  ibv_qp_init_attr attributes{};
  attributes.qp_type = IBV_QPT_RC;
  attributes.send_cq = attributes.recv_cq = context->cq(0);
  attributes.cap = {.max_send_wr = 4,
                    .max_recv_wr = 4,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = 0};
  auto qp = context->create_qp(attributes);
  if (!qp) return failure(qp.error());
  const qp_address address =
      local_address(*qp, psn, context->port_attributes(), context->gid().entry.gid);
  return endpoint{std::move(*context), memory, *region, *qp, address};
}

/// Between processes `peer` is sent over a connection: qp_address has a text and a byte form.
result<void> connect(const endpoint& local, const qp_address& peer) {
  const int port = local.context.port();
  const auto sgid_index = static_cast<int>(local.context.gid().entry.gid_index);
  auto to_rtr = rtr_options(local.address, peer, {.port = port, .sgid_index = sgid_index});
  if (!to_rtr) return failure(to_rtr.error());
  if (auto done = qp_to_init(local.qp, {.port = port, .access = IBV_ACCESS_REMOTE_WRITE}); !done)
    return done;
  if (auto done = qp_to_rtr(local.qp, *to_rtr); !done) return done;
  return qp_to_rts(local.qp, {.sq_psn = local.address.psn});
}

ibv_sge piece_of(const endpoint& end, std::size_t offset, std::size_t length) {
  return {reinterpret_cast<std::uint64_t>(end.memory.data()) + offset,
          static_cast<std::uint32_t>(length), end.region->lkey};
}

/// Sleeps until one request of this end is done, and shows it.
result<void> complete_one(const endpoint& end, const char* what) {
  ibv_cq* const queues[] = {end.context.cq(0)};
  auto waiter = cq_waiter::create(end.context.comp_channel(0), queues);
  if (!waiter) return failure(waiter.error());
  std::array<ibv_wc, 1> completion{};
  auto answer = waiter->wait(completion, std::chrono::seconds(5));
  if (!answer) return failure(answer.error());
  if (answer->what != cq_waiter::outcome::completions)
    return failure(error(verb::poll_cq, ETIMEDOUT).explain("no completion of the %s", what));
  const completion_info& info = describe(completion[0].status);
  if ((completion[0].opcode & IBV_WC_RECV) != 0)
    print_row(what, "{}, {} bytes", info.name, completion[0].byte_len);
  else
    print_row(what, "{}", info.name);
  if (info.kind == completion_class::success) return {};
  return failure(error(verb::poll_cq, EIO).explain("%s: %s", info.name, info.advice));
}

/// An RDMA write, which changes the peer's memory and completes only here, and a send, which takes
/// a receive there.
result<void> move_data() {
  std::array<char, 128> from{}, to{};
  auto sender = make_endpoint(from, 0x111);
  if (!sender) return failure(sender.error());
  auto receiver = make_endpoint(to, 0x222);
  if (!receiver) return failure(receiver.error());
  if (auto done = connect(*sender, receiver->address); !done) return done;
  if (auto done = connect(*receiver, sender->address); !done) return done;

  constexpr std::string_view written = "written", sent = "sent";
  constexpr std::size_t half = 64;
  written.copy(from.data(), half);
  sent.copy(from.data() + half, half);

  ibv_sge whole = piece_of(*receiver, half, half);
  ibv_recv_wr receive{};
  receive.sg_list = &whole;
  receive.num_sge = 1;
  if (auto posted = post_recv(receiver->qp, &receive); !posted) return posted;

  ibv_sge pieces[] = {piece_of(*sender, 0, written.size()), piece_of(*sender, half, sent.size())};
  ibv_send_wr write{}, send{};
  write.sg_list = &pieces[0];
  write.num_sge = 1;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.send_flags = IBV_SEND_SIGNALED;
  write.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(to.data());
  write.wr.rdma.rkey = receiver->region->rkey;
  write.next = &send;
  send.sg_list = &pieces[1];
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  if (auto posted = post_send(sender->qp, &write); !posted) return posted;

  if (auto done = complete_one(*sender, "write"); !done) return done;
  if (auto done = complete_one(*sender, "send"); !done) return done;
  if (auto done = complete_one(*receiver, "receive"); !done) return done;
  const std::string_view first(to.data(), written.size()), second(to.data() + half, sent.size());
  print_row("arrived", "\"{}\", \"{}\"", first, second);
  if (first != written || second != sent)
    return failure(error(verb::none, EIO).explain("what arrived is not what was sent"));
  if (auto gone = sender->context.reset(); !gone) return gone;
  return receiver->context.reset();
}

/// Shows a context, and data on its way, on a real device, or else on a simulated one.
result<void> show() {
  std::optional<shim::session> simulation;  // until it ends, the simulated device is the only one
  auto context = open_and_register();
  if (!context) {
    fmt::print("No real device to use: {}\n", context.error());
    simulation.emplace();
    context = open_and_register();
    if (!context) return failure(context.error());
  }
  fmt::print("A context on {}:\n\n", simulation ? "the simulated device" : "a real device");
  print_inventory(*context);
  // The destructor would release it as well, but it cannot return an error.
  if (auto gone = context->reset(); !gone) return gone;
  fmt::print("\nData from one context to another:\n\n");
  return move_data();
}

/// The calls to fail, in turn.
result<void> run_once() {
  auto context = open_and_register();
  return context ? context->reset() : failure(context.error());
}

bool destroys(verb call) {
  static const std::set<verb> destroying = {
      verb::free_device_list,     verb::close_device, verb::dealloc_pd, verb::dereg_mr,
      verb::destroy_comp_channel, verb::destroy_cq,   verb::close};
  return destroying.count(call) != 0;
}

/// An errno that the call can return; 0 for a call that cannot fail.
int likely_errno(verb call) {
  static const std::map<verb, int> special = {
      {verb::free_device_list, 0},   {verb::close_device, 0},
      {verb::query_device, EIO},     {verb::query_port, EIO},
      {verb::query_gid_table, EIO},  {verb::req_notify_cq, EIO},
      {verb::epoll_create1, EMFILE}, {verb::create_comp_channel, EMFILE},
      {verb::fcntl, EBADF},          {verb::close, EIO}};
  if (const auto found = special.find(call); found != special.end()) return found->second;
  return destroys(call) ? EBUSY : ENOMEM;
}

/// True if each failure was reported as it was injected, and left nothing behind.
bool fail_every_step() {
  std::vector<shim::call_record> steps;
  {
    shim::session undisturbed;
    if (!run_once()) return false;
    steps = undisturbed.trace();
  }
  fmt::print("\nEvery step of it failed in turn, on the simulated device:\n\n");
  fmt::print("  {:<26}{:<8}{:>9}{:>6}\n", "step", "errno", "released", "left");
  std::map<verb, std::uint64_t> seen;
  std::size_t failed = 0, released = 0, left = 0, wrong = 0;
  for (const shim::call_record& step : steps) {
    const int code = likely_errno(step.call);
    if (code == 0) continue;
    shim::session s;
    s.fail(step.call).nth(++seen[step.call]).with(code);
    const auto outcome = run_once();

    std::size_t gone = 0;
    for (const shim::call_record& call : s.trace())  // a failed close() closes, too
      gone += destroys(call.call) && (call.injected == 0 || call.call == verb::close) ? 1U : 0U;
    const std::size_t alive = s.live();
    const bool told =
        !outcome && outcome.error().call() == step.call && outcome.error().code() == code;
    const bool right = s.finish().empty() && told;
    fmt::print("  {:<26}{:<8}{:>9}{:>6}{}\n", step.call, errno_name(code), gone, alive,
               right ? "" : "  wrong");
    ++failed, released += gone, left += alive, wrong += right ? 0U : 1U;
  }
  fmt::print("\n{} steps failed, {} objects released, {} left\n", failed, released, left);
  return failed != 0 && left == 0 && wrong == 0;
}

}  // namespace

int main() {
  if (auto shown = show(); !shown) {
    fmt::print(stderr, "{}\n", shown.error());
    return 1;
  }
  return fail_every_step() ? 0 : 1;
}
