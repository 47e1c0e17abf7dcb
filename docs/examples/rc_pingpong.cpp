// Like rdma-core's ibv_rc_pingpong, with which it interoperates: measures the round trip of
// messages.
//
// usage: rc_pingpong [-d DEVICE] [-i IB_PORT] [-g GID_INDEX] [-p TCP_PORT] [-s SIZE] [-m MTU]
//                    [-n ITERATIONS] [-e] [SERVER]
#include "rc_pingpong.hpp"

#include <unistd.h>

#include <charconv>
#include <cstring>
#include <exception>
#include <ibvxx/format.hpp>
#include <stdexcept>
#include <string_view>

namespace {

template <class Number>
Number number(char option, std::string_view text, Number low, Number high) {
  Number value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    throw std::invalid_argument(
        fmt::format("-{} takes a number from {} to {}, not '{}'", option, low, high, text));
  return value;
}

ibv_mtu mtu(std::string_view text) {
  const int bytes = number('m', text, 256, 4096);
  for (const ibv_mtu one : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096})
    if (ibvxx::mtu_bytes(one) == bytes) return one;
  throw std::invalid_argument("-m takes 256, 512, 1024, 2048 or 4096");
}

pingpong_options parse(int count, char** arguments) {
  pingpong_options options;
  for (int option; (option = ::getopt(count, arguments, "d:i:g:p:s:m:n:e")) != -1;) {
    const auto letter = static_cast<char>(option);
    switch (option) {
      case 'd':
        options.device = ::optarg;
        break;
      case 'i':
        options.ib_port = number(letter, ::optarg, 1, 255);
        break;
      case 'g':
        options.gid_index = number(letter, ::optarg, 0, 255);
        break;
      case 'p':
        options.tcp_port = number<std::uint16_t>(letter, ::optarg, 1, 65535);
        break;
      case 's':
        options.size = number<std::uint32_t>(letter, ::optarg, 1, 1U << 30);
        break;
      case 'm':
        options.mtu = mtu(::optarg);
        break;
      case 'n':
        options.iterations = number<std::size_t>(letter, ::optarg, 1, 1'000'000'000);
        break;
      case 'e':
        options.events = true;
        break;
      default:
        throw std::invalid_argument("see the first lines of rc_pingpong.cpp for the options");
    }
  }
  if (::optind < count - 1) throw std::invalid_argument("more than one server");
  if (::optind < count) options.server = arguments[::optind];
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const pingpong_options options = parse(count, arguments);
    pingpong game(options);
    fmt::print("local   {}\n", ibvxx::or_throw(game.local().to_text()).view());
    game.meet();
    fmt::print("remote  {}\n", ibvxx::or_throw(game.remote().to_text()).view());
    const double seconds = game.play().count();
    const auto iterations = static_cast<double>(options.iterations);
    const double bytes = 2 * iterations * options.size;
    fmt::print("{} bytes in {:.2f} seconds = {:.2f} Mbit/sec\n", bytes, seconds,
               bytes * 8 / seconds / 1e6);
    fmt::print("{} iters in {:.2f} seconds = {:.2f} usec/iter\n", options.iterations, seconds,
               seconds * 1e6 / iterations);
    if (!game.intact()) throw std::runtime_error("the last message was damaged");
    game.close();
  } catch (const std::exception& failed) {
    fmt::print(stderr, "{}\n", failed.what());
    return 1;
  }
}
