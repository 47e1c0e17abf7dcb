// rc_pingpong with itself, both ends in one process on the simulated device; and the form of its
// addresses, which it shares with ibv_rc_pingpong. The kernel tier lets it play with that.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <future>
#include <ibvxx/shim.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "../../docs/examples/rc_pingpong.hpp"

namespace {

std::atomic<int> failures = 0;

void expect(bool good, const char* what) {
  std::printf("%s: %s\n", good ? "good" : "WRONG", what);
  if (!good) ++failures;
}

/// The client may start before the server listens.
void meet_patiently(pingpong& client) {
  for (int tries = 500;; --tries) {
    try {
      return client.meet();
    } catch (const std::system_error& refused) {
      if (tries == 0 || refused.code() != std::errc::connection_refused) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

bool plays(bool events) {
  ibvxx::shim::session machine;
  pingpong_options options;
  options.tcp_port = static_cast<std::uint16_t>(20000 + ::getpid() % 20000);
  options.size = 3000;  // more than a packet
  options.iterations = 200;
  options.events = events;
  const auto side = [&options](const std::string& server_name) {
    pingpong_options mine = options;
    mine.server = server_name;
    pingpong game(mine);
    server_name.empty() ? game.meet() : meet_patiently(game);
    static_cast<void>(game.play());
    expect(game.intact(), "the last message is whole");
    game.close();
    return std::pair(game.local(), game.remote());
  };
  auto server = std::async(std::launch::async, side, std::string());
  const auto [client_local, client_remote] = side("127.0.0.1");
  const auto [server_local, server_remote] = server.get();
  const bool met = client_local.qpn == server_remote.qpn && client_remote.psn == server_local.psn;
  return met && machine.calls(ibvxx::verb::post_send) == 400 && machine.finish().empty();
}

void wire() {
  ibvxx::qp_address address;
  address.lid = 0x12;
  address.qpn = 0xabc;
  address.psn = 0xfedcba;
  address.gid = ibvxx::shim::gid("::ffff:10.0.0.1");
  wire_address told = to_wire(address);
  constexpr std::string_view expected = "0012:000abc:fedcba:00000000000000000000ffff0a000001";
  expect(told.data() == expected, "an address in ibv_rc_pingpong's form");
  const auto back = from_wire(told, IBV_MTU_1024);
  expect(back && *back == address, "it is read back unchanged");
  const auto refuses = [&told](std::size_t at, char c) {
    wire_address wrong = told;
    wrong[at] = c;
    return !from_wire(wrong, IBV_MTU_1024);
  };
  expect(refuses(4, ' ') && refuses(0, '+') && refuses(20, 'G') && refuses(10, '\0') &&
             refuses(51, '0'),
         "what is not of that form is refused");
}

}  // namespace

int main() {
  wire();
  expect(plays(false), "200 messages each way, polling");
  expect(plays(true), "200 messages each way, sleeping");
  return failures == 0 ? 0 : 1;
}
