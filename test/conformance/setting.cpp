#include "setting.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <set>
#include <thread>

namespace conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Reads an event of a non-blocking context, waiting for it; false where none comes.
bool next_event(const setting& s, milliseconds limit, ibv_async_event& event) {
  const auto end = steady_clock::now() + limit;
  while (ibv_get_async_event(s.context, &event) != 0) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    if (left.count() <= 0 || !wait_readable(s.context->async_fd, left)) return false;
  }
  return true;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text.empty() ? "nothing" : text;
}

}  // namespace

bool wait_for(milliseconds limit, const std::function<bool()>& happened) {
  const auto end = steady_clock::now() + limit;
  while (!happened()) {
    if (steady_clock::now() >= end) return happened();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

bool wait_readable(int fd, milliseconds limit) {
  pollfd asked{fd, POLLIN, 0};
  return ::poll(&asked, 1, static_cast<int>(limit.count())) == 1;
}

void set_non_blocking(int fd) {
  need(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) == 0, "fcntl");
}

std::vector<ibv_wc> collect(const setting& s, ibv_cq* cq, std::size_t expected) {
  std::vector<ibv_wc> all;
  const auto drained = [&] {
    ibv_wc completion{};
    while (ibv_poll_cq(cq, 1, &completion) == 1) all.push_back(completion);
    return expected != 0 && all.size() >= expected;
  };
  wait_for(expected != 0 ? s.world.patience() : s.world.silence(), drained);
  return all;
}

std::string told(const ibv_wc& completion) {
  std::string text = "wr " + std::to_string(completion.wr_id) + " " + name(completion.status);
  if (completion.status != IBV_WC_SUCCESS) return text;
  text += " " + wc_opcode_name(completion.opcode);
  const bool receive = (completion.opcode & IBV_WC_RECV) != 0;
  if (receive || completion.opcode == IBV_WC_RDMA_READ || completion.opcode == IBV_WC_COMP_SWAP ||
      completion.opcode == IBV_WC_FETCH_ADD)
    text += " len " + std::to_string(completion.byte_len);
  if (completion.wc_flags != 0) text += " flags " + hex(completion.wc_flags);
  if (receive && (completion.wc_flags & IBV_WC_WITH_IMM) != 0)
    text += " imm " + hex(be32toh(completion.imm_data));
  return text;
}

std::string completions(const setting& s, ibv_cq* cq, std::size_t expected) {
  std::vector<std::string> words;
  for (const ibv_wc& completion : collect(s, cq, expected)) words.push_back(told(completion));
  while (words.size() < expected) words.emplace_back("missing");
  return joined(words, "; ");
}

std::string settled_completions(const setting& s, ibv_cq* cq) {
  std::this_thread::sleep_for(s.world.settling());
  std::vector<std::string> words;
  ibv_wc completion{};
  while (ibv_poll_cq(cq, 1, &completion) == 1) words.push_back(told(completion));
  return joined(words, "; ");
}

std::string async_events(const setting& s, std::size_t expected) {
  std::vector<std::string> names;
  ibv_async_event event{};
  while (next_event(s, names.size() < expected ? s.world.patience() : s.world.silence(), event)) {
    names.push_back(name(event.event_type));
    ibv_ack_async_event(&event);
    if (names.size() == expected) break;
  }
  std::sort(names.begin(), names.end());
  return joined(names, ", ");
}

std::string async_event_kinds(const setting& s, ibv_event_type at_least) {
  std::set<std::string> names;
  ibv_async_event event{};
  while (next_event(s, names.contains(name(at_least)) ? s.world.silence() : s.world.patience(),
                    event)) {
    names.insert(name(event.event_type));
    ibv_ack_async_event(&event);
  }
  return joined({names.begin(), names.end()}, ", ");
}

std::string settled_async_events(const setting& s) {
  std::vector<std::string> names;
  ibv_async_event event{};
  while (next_event(s, milliseconds(0), event)) {
    names.push_back(name(event.event_type));
    ibv_ack_async_event(&event);
  }
  std::sort(names.begin(), names.end());
  return joined(names, ", ");
}

std::string or_blocks(const setting& s, const std::function<int()>& call,
                      const std::function<void()>& unblock) {
  auto outcome = std::async(std::launch::async, call);
  // Long enough for a slow machine, since something that blocks does so for ever.
  if (outcome.wait_for(s.world.silence() * 4) == std::future_status::ready)
    return code_name(outcome.get());
  unblock();
  return "blocks, then " + code_name(outcome.get());
}

owned<ibv_cq> make_cq(const setting& s, int cqe, ibv_comp_channel* channel) {
  owned<ibv_cq> made(ibv_create_cq(s.context, cqe, nullptr, channel, 0));
  need(made != nullptr, "ibv_create_cq");
  return made;
}

void need(bool succeeded, const char* what) {
  if (succeeded) return;
  const int code = errno;
  std::printf("broken: %s failed after %s: %s\n", what, last_probe(), errno_name(code).c_str());
  std::fflush(stdout);
  std::_Exit(3);
}

region::region(const setting& s, std::size_t size, unsigned access)
    : memory_(size), mr_(ibv_reg_mr(s.pd, memory_.data(), size, access)) {
  need(mr_ != nullptr, "ibv_reg_mr");
}

std::uint64_t region::address(std::size_t offset) const noexcept {
  return reinterpret_cast<std::uintptr_t>(memory_.data()) + offset;
}

ibv_sge region::piece(std::size_t offset, std::size_t length) const noexcept {
  return {address(offset), static_cast<std::uint32_t>(length), mr_->lkey};
}

void region::fill(std::size_t offset, std::size_t length, unsigned char first) {
  for (std::size_t i = 0; i < length; ++i)
    memory_[offset + i] = static_cast<unsigned char>(first + i % 251);
}

bool region::filled(std::size_t offset, std::size_t length, unsigned char first) const {
  for (std::size_t i = 0; i < length; ++i)
    if (memory_[offset + i] != static_cast<unsigned char>(first + i % 251)) return false;
  return true;
}

}  // namespace conformance
