#include "program.hpp"

#include <algorithm>

namespace ibvxx::model_test {
namespace {

shim::simulated machine() {
  shim::simulated both{{}};
  for (const char* name : program::device_names) {
    shim::device_description device;
    device.name = name;
    const std::string last(1, device.name.back());
    device.ports[0].gids = {{shim::gid("fe80::1" + last)}, {shim::gid("::ffff:10.0.0.1" + last)}};
    both.devices.push_back(device);
  }
  return both;
}

}  // namespace

program::program(std::uint64_t seed, coverage& seen)
    : random_(seed), seen_(seen), session_(machine()) {
  // Random programs do these things all the time; their results are what is compared.
  session_.tolerate(finding_kind::memory_in_use);
  session_.tolerate(finding_kind::undersized_cq);
}

void program::disagree(const std::string& what) const {
  std::string text = "at step " + std::to_string(steps_) + ": " + what + "\nafter:";
  const std::size_t kept = std::min(deeds_, history_.size());
  for (std::size_t i = deeds_ - kept; i < deeds_; ++i) {
    const deed& one = history_[i % history_.size()];
    text += std::string("\n  ") + one.what;
    for (const long long number : one.numbers) text += " " + std::to_string(number);
  }
  for (const auto& one : session_.findings()) text += "\nfound: " + one.text;
  throw disagreement(text);
}

int program::maybe_inject(verb call, std::uint64_t in) {
  if (!chance(in)) return 0;
  constexpr int codes[] = {ENOMEM, EIO, EAGAIN, EPERM};
  const int code = codes[below(4)];
  session_.fail(call).with(code);
  ++seen_.injected;
  did("the next call of this verb fails, with", call, code);
  return code;
}

void program::compare() {
  constexpr object_kind kinds[] = {
      object_kind::context, object_kind::pd,           object_kind::cq,  object_kind::mr,
      object_kind::mw,      object_kind::comp_channel, object_kind::srq, object_kind::qp,
      object_kind::ah,      object_kind::device_list};
  for (const object_kind kind : kinds)
    expect_equal(session_.live(kind), objects_.count(kind), name(kind));
  expect(std::equal(memory_.begin(), memory_.end(), wire_.arena.begin()), "memory differs");
  std::map<finding_kind, std::size_t> found;
  for (const auto& one : session_.findings()) found[one.kind] += one.count;
  expect(found == objects_.findings, "other findings than the program has earned");
}

void program::build_up() {
  if (chance(3)) return connect();
  if (objects_.count(object_kind::context) < 2)
    open_context();
  else if (objects_.count(object_kind::pd) < 2)
    make_pd();
  else if (objects_.count(object_kind::cq) < 4)
    make_cq();
  else if (objects_.count(object_kind::mr) < 12)
    make_region();
  else if (objects_.count(object_kind::qp) < 5)
    make_qp();
  else
    connect();
}

void program::step() {
  ++steps_;
  using kind_of_step = void (program::*)();
  static constexpr struct {
    unsigned weight;
    kind_of_step make;
  } steps[] = {
      {12, &program::build_up},
      {1, &program::open_context},
      {2, &program::make_pd},
      {1, &program::make_channel},
      {2, &program::make_cq},
      {3, &program::make_region},
      {2, &program::make_window},
      {1, &program::make_srq},
      {2, &program::make_qp},
      {1, &program::make_ah},
      {5, &program::destroy_something},
      {2, &program::move_something},
      {5, &program::connect},
      {2, &program::change_state},
      {24, &program::post_sends},
      {16, &program::post_receives},
      {14, &program::poll},
      {3, &program::arm},
      {3, &program::read_completion_event},
      {2, &program::read_async_events},
      {1, &program::change_port},
      {1, &program::use_a_dead_handle},
  };
  unsigned sum = 0;
  for (const auto& one : steps) sum += one.weight;
  auto drawn = static_cast<unsigned>(below(sum));
  for (const auto& one : steps) {
    if (drawn < one.weight) {
      (this->*one.make)();
      break;
    }
    drawn -= one.weight;
  }
  if (chance(400)) compose_context();
  if (steps_ % 16 == 0) compare();
}

void program::tear_down() {
  compare();
  read_async_events();
  // Whatever the order, there is always something that nothing uses; injected failures pass.
  for (int rounds = 0; objects_.count() != 0; ++rounds) {
    expect(rounds < 100000, "the teardown does not end");
    destroy_something();
  }
  compare();
  std::map<finding_kind, std::size_t> found;
  for (const auto& one : session_.finish()) found[one.kind] += one.count;
  expect(found == objects_.findings, "the end of the session found something else");
}

}  // namespace ibvxx::model_test
