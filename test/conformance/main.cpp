// Prints how a device behaves, as a transcript of one line per probe. The same source runs on
// Soft-RoCE inside the kernel tier's machine and on the simulated device; compare.sh prints
// the differences.
//
// usage: conformance [GROUP...]
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "groups.hpp"

namespace conformance {
namespace {

constexpr group groups[] = {
    {"device", probe_device},
    {"port", probe_port},
    {"memory", probe_memory},
    {"window", probe_window},
    {"cq", probe_cq},
    {"channel", probe_channel},
    {"qp", probe_qp},
    {"qp-caps", probe_qp_caps},
    {"srq", probe_srq},
    {"ah", probe_ah},
    {"destroy", probe_destroy},
    {"not-offered", probe_not_offered},
    {"rc", probe_transitions_rc},
    {"uc", probe_transitions_uc},
    {"ud", probe_transitions_ud},
    {"values", probe_transition_values},
    {"query-qp", probe_query_qp},
    {"posting", probe_posting},
    {"transfer", probe_transfer},
    {"atomic", probe_atomic},
    {"refusal", probe_refusal},
    {"retry", probe_retry},
    {"packet", probe_packet},
    {"flush", probe_flush},
    {"unreliable", probe_unreliable},
    {"datagram", probe_datagram},
    {"multicast", probe_multicast},
    {"shared-receive", probe_shared_receive},
    {"extended", probe_extended},
    {"notification", probe_notification},
    {"acknowledgement", probe_acknowledgement},
    {"async", probe_async},
    {"world", probe_world},
};

// Seconds for one group: no probe waits that long for anything.
constexpr unsigned watchdog = 240;

void hung(int) {
  // Only what a signal handler may call.
  const auto say = [](const char* text) {
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, text, std::strlen(text));
  };
  say("broken: the watchdog ended the program after ");
  say(last_probe());
  say("\n");
  ::_exit(4);
}

ibv_context* open(const std::string& name) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  need(list != nullptr, "ibv_get_device_list");
  ibv_context* context = nullptr;
  for (ibv_device** device = list; device && *device && !context; ++device)
    if (ibv_get_device_name(*device) == name) context = ibv_open_device(*device);
  ibv_free_device_list(list);
  need(context != nullptr, "ibv_open_device");
  return context;
}

void run(const group& one, environment& world) {
  ::alarm(watchdog);
  begin_group(one.name);
  ibv_context* const context = open(world.device());
  set_non_blocking(context->async_fd);
  ibv_pd* const pd = ibv_alloc_pd(context);
  need(pd != nullptr, "ibv_alloc_pd");
  setting s{world, context, pd, {}};
  need(ibv_query_gid(context, 1, 1, &s.gid) == 0, "ibv_query_gid");
  one.run(s);
  // Nothing that a group made may be left, or it would disturb the next one.
  need((errno = ibv_dealloc_pd(pd)) == 0, "ibv_dealloc_pd");
  need(ibv_close_device(context) == 0, "ibv_close_device");
}

bool asked_for(const char* name, int count, char** names) {
  if (count == 0) return true;
  for (int i = 0; i < count; ++i)
    if (std::strcmp(names[i], name) == 0) return true;
  return false;
}

}  // namespace
}  // namespace conformance

int main(int count, char** arguments) {
  using namespace conformance;
  ::signal(SIGALRM, &hung);
  const auto world = make_environment();
  for (const group& one : groups)
    if (asked_for(one.name, count - 1, arguments + 1)) run(one, *world);
  std::puts("end of transcript");
}
