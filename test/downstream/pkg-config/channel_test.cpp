// Owners without a context around them: what the second failure leaves, the first owners release.
#include <cerrno>
#include <cstdio>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/shim.hpp>
#include <utility>

#if defined(__cpp_lib_expected) && defined(TL_EXPECTED_HPP) && \
    (!defined(_LIBCPP_VERSION) || _LIBCPP_VERSION >= 190000)
#error "there is std::expected, and yet tl::expected was asked for"
#endif

namespace {

struct channel {
  ibvxx::unique_context device;
  ibvxx::unique_comp_channel events;
  ibvxx::unique_cq queue;
};

ibvxx::result<channel> open_channel() {
  const auto devices = ibvxx::get_device_list();
  if (!devices) return ibvxx::failure(devices.error());
  auto device = ibvxx::open_device((*devices)[0]);
  if (!device) return ibvxx::failure(device.error());
  auto events = ibvxx::create_comp_channel(*device);
  if (!events) return ibvxx::failure(events.error());
  auto queue = ibvxx::create_cq(*device, 16, events->get());
  if (!queue) return ibvxx::failure(queue.error());
  return channel{std::move(*device), std::move(*events), std::move(*queue)};
}

}  // namespace

int main() {
  ibvxx::shim::session s;
  s.fail(ibvxx::verb::create_cq).with(ENOMEM);
  const auto refused = open_channel();
  const bool told = !refused && refused.error().call() == ibvxx::verb::create_cq &&
                    refused.error().code() == ENOMEM;
  const bool released = s.live() == 0 && s.calls(ibvxx::verb::destroy_comp_channel) == 1;
  const bool opened = open_channel().has_value();
  const bool clean = s.finish().empty();
  std::printf("told %d, released %d, opened %d, clean %d\n", told, released, opened, clean);
  return told && released && opened && clean ? 0 : 1;
}
