#include "core/swept_calls.hpp"

#include <atomic>
#include <cstddef>

namespace ibvxx::shim {
namespace {

std::atomic<std::uint64_t> runs{0};

/// The number of the calling thread in the run that it last made a call in. Not the thread's id: a
/// new thread may have that of one that has ended.
struct thread_number {
  std::uint64_t run = 0;
  unsigned number = 0;
};
constinit thread_local thread_number own_number;

}  // namespace

swept_calls::swept_calls() noexcept : id_(++runs) {}

call_address swept_calls::count(verb call) {
  if (own_number.run != id_) {
    counts_.emplace_back();
    own_number = {id_, static_cast<unsigned>(counts_.size())};
  }
  const std::uint64_t number =
      ++counts_[own_number.number - std::size_t{1}][static_cast<std::size_t>(call)];
  return all_.emplace_back(call_address{call, number, own_number.number});
}

}  // namespace ibvxx::shim
