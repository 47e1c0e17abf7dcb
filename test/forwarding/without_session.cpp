// A program that is linked with the shim and makes no session: prints what devices it sees.
#include <cstdio>
#include <ibvxx/ibvxx.hpp>

int main() {
  const auto list = ibvxx::get_device_list();
  if (!list) return 1;
  for (ibv_device* const device : *list) std::printf("sees %s\n", ::ibv_get_device_name(device));
  return 0;
}
