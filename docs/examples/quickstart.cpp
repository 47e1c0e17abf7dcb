// ibvxx on one page: open a context, look at what it owns, take it down; then fail every step of
// that in turn and see that nothing is left. Without an RDMA device it runs on a simulated one.
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ibvxx/format.hpp>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/shim.hpp>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

using namespace ibvxx;

namespace {

std::array<std::byte, 65536> buffer;

/// There is no clean-up code: whatever fails, the owners release what there is.
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

/// Shows a context on a real device, or else on a simulated one.
result<void> show() {
  std::optional<shim::session> simulation;  // while it lives, the simulated device is all there is
  auto context = open_and_register();
  if (!context) {
    fmt::print("No real device to use: {}\n", context.error());
    simulation.emplace();
    context = open_and_register();
    if (!context) return failure(context.error());
  }
  fmt::print("A context on {}:\n\n", simulation ? "the simulated device" : "a real device");
  print_inventory(*context);
  return context->reset();  // the destructor would do, but it cannot return what went wrong
}

/// What is failed, call by call.
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

/// An errno that the call really can give; 0 for a call that cannot fail.
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

/// True if each failure was told as it happened and left nothing behind.
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
    for (const shim::call_record& call : s.trace())  // a close() that fails has closed all the same
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
