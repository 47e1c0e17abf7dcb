// What every probe works with: an open device, and the waiting that real devices need.
#pragma once

#include <infiniband/verbs.h>

#include <functional>
#include <string>
#include <vector>

#include "environment.hpp"
#include "objects.hpp"
#include "transcript.hpp"

namespace conformance {

/// An open device, one for each group.
struct setting {
  environment& world;
  ibv_context* context;
  ibv_pd* pd;
  ibv_gid gid;  ///< GID 1 of port 1
};

inline constexpr unsigned every_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                         IBV_ACCESS_MW_BIND;

/// Waits until `happened` says so, no longer than `limit`. Returns whether it did.
bool wait_for(std::chrono::milliseconds limit, const std::function<bool()>& happened);
/// Waits until a descriptor is readable.
bool wait_readable(int fd, std::chrono::milliseconds limit);
void set_non_blocking(int fd);

/// Polls until `expected` completions have arrived, or, for 0, until none has arrived for a while.
std::vector<ibv_wc> collect(const setting& s, ibv_cq* cq, std::size_t expected);
/// "wr 1 SUCCESS RECV len 64"; of an error only what is defined: "wr 1 REM_ACCESS_ERR".
[[nodiscard]] std::string told(const ibv_wc& completion);
/// The same for what arrives within the environment's patience; "nothing" where nothing does, and
/// "missing" for each one that does not arrive.
[[nodiscard]] std::string completions(const setting& s, ibv_cq* cq, std::size_t expected);

/// Waits until the other side has settled, then returns its completions.
[[nodiscard]] std::string settled_completions(const setting& s, ibv_cq* cq);

/// Reads and acknowledges `expected` events: their names in alphabetical order, since independent
/// events have none of their own. For 0 waits a while that none comes.
[[nodiscard]] std::string async_events(const setting& s, std::size_t expected);
/// Reads and acknowledges events until none has arrived for a while: each name once.
[[nodiscard]] std::string async_event_kinds(const setting& s, ibv_event_type at_least);

/// Reads and acknowledges the events that have arrived already.
[[nodiscard]] std::string settled_async_events(const setting& s);

/// Calls what may block for ever: the code it returned, or "blocks", after which `unblock` must
/// make it return.
[[nodiscard]] std::string or_blocks(const setting& s, const std::function<int()>& call,
                                    const std::function<void()>& unblock);

[[nodiscard]] owned<ibv_cq> make_cq(const setting& s, int cqe, ibv_comp_channel* channel = nullptr);
/// Aborts the program with the verb's name where something fails on which probes rest.
void need(bool succeeded, const char* what);

/// A buffer and its memory region.
class region {
 public:
  region(const setting& s, std::size_t size, unsigned access = every_access);
  [[nodiscard]] ibv_mr* operator->() const noexcept { return mr_.get(); }
  [[nodiscard]] ibv_mr* get() const noexcept { return mr_.get(); }
  [[nodiscard]] unsigned char* data() noexcept { return memory_.data(); }
  [[nodiscard]] std::uint64_t address(std::size_t offset = 0) const noexcept;
  [[nodiscard]] ibv_sge piece(std::size_t offset, std::size_t length) const noexcept;
  void fill(std::size_t offset, std::size_t length, unsigned char first);
  /// Whether fill() of these arguments would leave it as it is.
  [[nodiscard]] bool filled(std::size_t offset, std::size_t length, unsigned char first) const;

 private:
  std::vector<unsigned char> memory_;
  owned<ibv_mr> mr_;
};

}  // namespace conformance
