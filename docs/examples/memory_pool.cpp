// Messages in blocks of a pool: a block is taken for a message and returned after its completion.
#include "memory_pool.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <ibvxx/format.hpp>
#include <map>
#include <string_view>

#include "loopback.hpp"

namespace {

constexpr std::size_t messages = 100, blocks = 8, block_size = 4096;

void run() {
  auto context = ibvxx::or_throw(ibvxx::rdma_context::open({.cqs = 1, .notification_cq = false}));
  memory_pool pool(context.pd(), block_size, blocks, IBV_ACCESS_LOCAL_WRITE);
  const loopback pair = make_loopback(context, context.cq(0));

  ibv_cq* const queues[] = {context.cq(0)};
  auto waiter = ibvxx::or_throw(ibvxx::cq_waiter::create(context.comp_channel(0), queues));
  std::map<std::uint64_t, memory_pool::block> in_flight;  // by wr_id
  std::array<ibv_wc, 16> completions;
  std::uint64_t next_id = 0;
  std::size_t sent = 0, received = 0;
  while (received < messages) {
    // A message takes two blocks, one at each end.
    while (sent < messages && pool.available() >= 2) {
      auto receive = pool.take(), send = pool.take();
      std::memset(send->memory().data(), static_cast<int>(sent), block_size);
      post_receive(pair.b, next_id, receive->piece(block_size));
      in_flight.emplace(next_id++, std::move(*receive));
      post_message(pair.a, next_id, send->piece(block_size));
      in_flight.emplace(next_id++, std::move(*send));
      ++sent;
    }
    const auto answer = ibvxx::or_throw(waiter.wait(completions, std::chrono::seconds(5)));
    if (answer.what != ibvxx::cq_waiter::outcome::completions)
      throw ibvxx::exception(ibvxx::error(ibvxx::verb::poll_cq, ETIMEDOUT));
    for (const ibv_wc& completion : std::span(completions.data(), answer.count)) {
      const auto& info = ibvxx::describe(completion.status);
      if (info.kind != ibvxx::completion_class::success)
        throw ibvxx::exception(
            ibvxx::error(ibvxx::verb::poll_cq, EIO).explain("%s: %s", info.name, info.advice));
      const auto done = in_flight.find(completion.wr_id);
      if ((completion.opcode & IBV_WC_RECV) != 0) {
        const auto expected = static_cast<std::byte>(received++);
        for (const std::byte byte : done->second.memory())
          if (byte != expected)
            throw ibvxx::exception(
                ibvxx::error(ibvxx::verb::none, EIO).explain("message %zu is damaged", received));
      }
      in_flight.erase(done);  // returns the block to the pool
    }
  }
  fmt::print("{} messages through {} blocks, {} of them free again\n", received, blocks,
             pool.available());
}

}  // namespace

int main() {
  try {
    run();
  } catch (const ibvxx::exception& failed) {
    fmt::print(stderr, "{}\n", failed.what());
    return 1;
  }
}
