// A random program: real objects, owned by the toolkit, beside the model of what they must be.
#pragma once

#include <array>
#include <cstdint>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/shim.hpp>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "objects.hpp"
#include "wire.hpp"

namespace ibvxx::model_test {

/// The two disagree. The text says where, and what the program did last.
struct disagreement : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A real object and its number; an empty entry has neither.
template <class Owner>
struct entry {
  Owner owner{};
  object_id id = none;
};

/// How often what happened: a model that never sees a thing cannot judge it.
struct coverage {
  std::map<ibv_wc_status, std::uint64_t> statuses{};  ///< of polled completions
  std::map<ibv_wc_opcode, std::uint64_t> opcodes{};   ///< of those that succeeded
  std::uint64_t completion_events = 0;
  std::uint64_t overruns = 0;
  std::uint64_t injected = 0;
  std::uint64_t refused_destroys = 0;
};

/// One program, in a session of its own. Steps may be made until it is torn down.
class program {
 public:
  static constexpr const char* device_names[] = {"sim0", "sim1"};

  program(std::uint64_t seed, coverage& seen);
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  /// Does one random thing, and compares. Throws disagreement.
  void step();
  /// Destroys everything, in a random order, ends the session, and compares the findings.
  void tear_down();

 private:
  /// Makes what is missing most, so that there is something to work with.
  void build_up();

  // program_objects.cpp
  void open_context();
  void close_context();
  void make_pd();
  void make_channel();
  void make_cq();
  void make_region();
  void make_window();
  void make_srq();
  void make_qp();
  void make_ah();
  void destroy_something();
  void move_something();
  void compose_context();
  void use_a_dead_handle();

  // program_work.cpp
  void connect();
  void change_state();
  void poll();
  void arm();
  void read_completion_event();
  void read_async_events();
  void change_port();

  // program_posting.cpp
  void post_sends();
  void post_receives();

  template <class Owner>
  void destroy(entry<Owner>& one, object_kind kind);
  template <class Owner>
  void move(std::vector<entry<Owner>>& all, object_kind kind);
  template <class Owner>
  object_id adopt(std::vector<entry<Owner>>& all, result<Owner> made, int injected,
                  object_kind kind, std::initializer_list<object_id> parents);
  void forget(object_id id, object_kind kind);
  void compare();

  [[nodiscard]] std::vector<piece> random_pieces(const queue_pair& qp, bool arriving,
                                                 std::size_t total);
  [[nodiscard]] std::size_t place(std::size_t begin, std::size_t size, std::size_t length);
  [[nodiscard]] send random_send(const queue_pair& qp);
  /// A region that a request of this domain may use for that, or now and then any other; or null.
  [[nodiscard]] const region* random_region(int device, object_id pd, std::size_t half,
                                            unsigned access);
  /// A queue pair, mostly one in a state to work with.
  [[nodiscard]] entry<unique_qp>* pick_working(bool sends);
  [[nodiscard]] int advance(entry<unique_qp>& one, ibv_qp_state state, const queue_pair& peer,
                            std::uint32_t psn);

  /// Sometimes makes the next call of a verb fail: the errno, or 0.
  [[nodiscard]] int maybe_inject(verb call, std::uint64_t in = 24);
  /// Throws, with the history.
  [[noreturn]] void disagree(const std::string& what) const;
  void expect(bool holds, const char* what) const {
    if (!holds) disagree(what);
  }
  template <class Number>
  void expect_equal(Number real, Number expected, const char* what) const {
    if (real != expected)
      disagree(std::string(what) + ": " + std::to_string(real) + " instead of " +
               std::to_string(expected));
  }
  /// Remembers what was done, for that history: numbers only, for a step must not cost much.
  template <class... Numbers>
  void did(const char* what, Numbers... numbers) {
    deed& latest = history_[deeds_++ % history_.size()];
    latest = {what, {static_cast<long long>(numbers)...}};
  }

  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  [[nodiscard]] bool chance(std::uint64_t in) { return below(in) == 0; }
  /// Any that there is, or null.
  template <class Owner>
  [[nodiscard]] entry<Owner>* pick(std::vector<entry<Owner>>& all) {
    return pick_if(all, [](object_id) { return true; });
  }
  /// Any that `fits` says, by its number.
  template <class Owner, class Fits>
  [[nodiscard]] entry<Owner>* pick_if(std::vector<entry<Owner>>& all, Fits&& fits) {
    std::size_t count = 0;
    for (auto& one : all) count += one.owner && fits(one.id) ? 1U : 0U;
    std::size_t drawn = count == 0 ? 0 : below(count);
    for (auto& one : all)
      if (one.owner && fits(one.id) && drawn-- == 0) return &one;
    return nullptr;
  }

  [[nodiscard]] std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory_.data()) + offset;
  }

  std::mt19937_64 random_;
  coverage& seen_;
  shim::session session_;
  objects objects_{};
  wire wire_{};
  alignas(64) std::array<unsigned char, arena_size> memory_{};
  std::uint64_t next_wr_id_ = 1;
  std::uint32_t next_psn_ = 0;
  std::uint64_t steps_ = 0;
  struct deed {
    const char* what;
    std::array<long long, 4> numbers;
  };
  std::array<deed, 32> history_{};  // the latest, in a circle
  std::size_t deeds_ = 0;

  std::vector<entry<unique_context>> contexts_{};
  std::vector<entry<unique_pd>> pds_{};
  std::vector<entry<unique_comp_channel>> channels_{};
  std::vector<entry<unique_cq>> cqs_{};
  std::vector<entry<unique_mr>> regions_{};
  std::vector<entry<unique_mw>> windows_{};
  std::vector<entry<unique_srq>> srqs_{};
  std::vector<entry<unique_qp>> qps_{};
  std::vector<entry<unique_ah>> ahs_{};

  std::map<object_id, int> device_of_{};         ///< of contexts and domains
  std::map<object_id, object_id> context_of_{};  ///< of domains, channels and queues
  std::map<object_id, object_id> channel_of_{};  ///< of completion queues
  std::map<object_id, std::vector<ibv_event_type>> port_events_{};  ///< unread, by context
  std::vector<ibv_cq*> dead_cqs_{};
};

}  // namespace ibvxx::model_test
