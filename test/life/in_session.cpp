// The life of a process in which a session is in force: in_session.sh runs each part, and says how
// it must end.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/shim.hpp>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

using namespace ibvxx;

namespace {

[[nodiscard]] ibv_context* open_first() {
  ibv_device** const list = ::ibv_get_device_list(nullptr);
  ibv_context* const context = ::ibv_open_device(list[0]);
  ::ibv_free_device_list(list);
  return context;
}

// IBVXX_SHIM=simulate

rdma_context& static_context() {
  static rdma_context context({});
  return context;
}

int static_context_is_closed_at_exit() {
  return static_context().enable() ? 0 : 1;
}

ibv_context* closed_late = nullptr;
[[gnu::destructor]] void close_late() {
  if (closed_late) ::ibv_close_device(closed_late);
}

int destructor_function_closes_the_device() {
  closed_late = open_first();
  return closed_late ? 0 : 1;
}

int leak() {
  ibv_context* const context = open_first();
  ibv_pd* const pd = ::ibv_alloc_pd(context);
  static char bytes[4096];
  static_cast<void>(::ibv_reg_mr(pd, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE));
  return 0;
}

/// A child's status, or 128 and the signal that ended it; a child that hangs is ended by SIGALRM.
[[nodiscard]] int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int children_while_a_thread_polls() {
  ibv_context* const context = open_first();
  ibv_cq* const cq = ::ibv_create_cq(context, 4, nullptr, nullptr, 0);
  std::atomic<bool> done{false};
  std::thread busy([&] {
    ibv_wc wc;
    while (!done) ::ibv_poll_cq(cq, 1, &wc);
  });
  int ended = 0;
  for (int i = 0; i < 40; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(5);
      ::close(0);
      if (i % 2 != 0) ::execl("/bin/true", "true", nullptr);
      // A session of its own, which it may use and which finds what it leaks.
      ibv_context* const own = open_first();
      ibv_pd* const pd = ::ibv_alloc_pd(own);
      if (i % 4 == 0) {
        ::ibv_dealloc_pd(pd);
        ::ibv_close_device(own);
      }
      std::exit(0);
    }
    const int expected = i % 4 == 2 ? shim::exit_status_of_findings : 0;
    ended += status_of(child) == expected ? 1 : 0;
  }
  done = true;
  busy.join();
  ::ibv_destroy_cq(cq);
  ::ibv_close_device(context);
  std::printf("%d children ended\n", ended);
  return 0;
}

// Sessions of the program.

int exit_in_a_session() {
  const shim::session s;
  static_cast<void>(open_first());
  std::exit(0);
}

int clean_exit_in_a_session() {
  const shim::session s;
  ::ibv_close_device(open_first());
  std::exit(5);
}

int child_exits_in_a_session() {
  shim::session s;
  ibv_context* const context = open_first();
  const pid_t child = ::fork();
  if (child == 0) {
    // The parent's objects are refused.
    const bool refused = ::ibv_close_device(context) != 0;
    std::exit(refused ? 7 : 8);
  }
  const int status = status_of(child);
  ::ibv_close_device(context);
  std::printf("child %d, %zu findings\n", status, s.finish().size());
  return 0;
}

template <class Run>
[[nodiscard]] bool cancelled(Run&& run) {
  pthread_t thread{};
  ::pthread_create(
      &thread, nullptr,
      [](void* body) -> void* {
        (*static_cast<std::remove_reference_t<Run>*>(body))();
        return nullptr;
      },
      &run);
  ::usleep(20'000);
  ::pthread_cancel(thread);
  void* result = nullptr;
  ::pthread_join(thread, &result);
  return result == PTHREAD_CANCELED;
}

int cancelled_in_calls() {
  shim::session s;
  ibv_context* const context = open_first();
  ibv_comp_channel* const channel = ::ibv_create_comp_channel(context);
  ibv_cq* cq = nullptr;
  void* user = nullptr;
  ibv_async_event event;
  std::printf("%d%d%d\n", cancelled([&] { ::ibv_get_async_event(context, &event); }),
              cancelled([&] { ::ibv_get_cq_event(channel, &cq, &user); }), cancelled([] {
                for (;;) ::close(::dup(0));
              }));
  // Nothing is left behind: the lock is free, and the next reader gets the event.
  cq = ::ibv_create_cq(context, 1, nullptr, channel, 0);
  s.raise_spurious_event(cq);
  ibv_cq* named = nullptr;
  ::ibv_get_cq_event(channel, &named, &user);
  ::ibv_ack_cq_events(named, 1);
  ::ibv_destroy_cq(cq);
  ::ibv_destroy_comp_channel(channel);
  ::ibv_close_device(context);
  for (const shim::finding& one : s.finish()) std::puts(one.text.c_str());
  return 0;
}

/// A destroy drops events while another thread waits for them.
int destroys_while_a_thread_waits() {
  shim::session s;
  ibv_context* const context = open_first();
  ibv_comp_channel* const channel = ::ibv_create_comp_channel(context);
  constexpr int rounds = 2000;
  std::thread reader([&] {
    for (int i = 0; i < rounds;) {
      ibv_cq* cq = nullptr;
      void* stop = nullptr;
      if (::ibv_get_cq_event(channel, &cq, &stop) != 0) break;
      ::ibv_ack_cq_events(cq, 1);
      if (stop) break;
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ibv_cq* const cq = ::ibv_create_cq(context, 1, nullptr, channel, 0);
    s.raise_spurious_event(cq);
    ::ibv_destroy_cq(cq);
  }
  ibv_cq* const last = ::ibv_create_cq(context, 1, channel, channel, 0);
  s.raise_spurious_event(last);
  reader.join();
  ::ibv_destroy_cq(last);
  // Every count was taken: the descriptor is not readable.
  ::fcntl(channel->fd, F_SETFL, O_NONBLOCK);
  std::uint64_t count = 0;
  std::printf("%d\n", static_cast<int>(::read(channel->fd, &count, sizeof count)));
  ::ibv_destroy_comp_channel(channel);
  ::ibv_close_device(context);
  std::printf("%zu findings\n", s.finish().size());
  return 0;
}

/// A call that waits in the kernel keeps no other thread waiting.
int waits_in_fcntl() {
  shim::session s;
  const int held = ::memfd_create("locked", MFD_CLOEXEC);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  ::fcntl(held, F_OFD_SETLK, &whole);
  const std::string path = "/proc/self/fd/" + std::to_string(held);
  const int other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  std::atomic<bool> locked{false};
  std::thread waiting([&] {
    struct flock again {};
    again.l_type = F_WRLCK;
    ::fcntl(other, F_OFD_SETLKW, &again);
    locked = true;
  });
  ::usleep(50'000);
  delete new int;
  std::printf("allocated, %s\n", locked ? "locked" : "not locked");
  whole.l_type = F_UNLCK;
  ::fcntl(held, F_OFD_SETLK, &whole);
  waiting.join();
  ::close(other);
  ::close(held);
  return 0;
}

/// An exception of a rule's action is caught where the verb was called.
int action_throws() {
  shim::session s;
  ibv_context* const context = open_first();
  s.at(verb::alloc_pd).run([&s] { s.unplug("none"); });
  try {
    static_cast<void>(::ibv_alloc_pd(context));
    std::puts("no exception");
  } catch (const std::logic_error& e) {
    std::puts(e.what());
  }
  s.at(verb::epoll_create1).run([] { throw std::runtime_error("lost"); });
  ::close(::epoll_create1(0));
  ::ibv_dealloc_pd(::ibv_alloc_pd(context));
  ::ibv_close_device(context);
  for (const shim::finding& one : s.finish()) std::puts(one.text.c_str());
  return 0;
}

/// Threads that poll without a pause do not keep another from its calls.
int busy_poller() {
  shim::session s;
  ibv_context* const context = open_first();
  ibv_cq* const cq = ::ibv_create_cq(context, 4, nullptr, nullptr, 0);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> polls{0};
  std::thread pollers[3];
  for (std::thread& one : pollers)
    one = std::thread([&] {
      ibv_wc wc;
      for (; !done; ++polls) ::ibv_poll_cq(cq, 1, &wc);
    });
  while (polls < 10'000) ::usleep(100);
  // The longest wait in each of some rounds: what else the machine does only makes it longer. With
  // a mutex alone it is a time slice, of several milliseconds.
  using clock = std::chrono::steady_clock;
  clock::duration shortest = std::chrono::hours(1);
  for (int round = 0; round < 8; ++round) {
    clock::duration longest{};
    for (int i = 0; i < 5000; ++i) {
      const auto begin = clock::now();
      ::ibv_dealloc_pd(::ibv_alloc_pd(context));
      longest = std::max(longest, clock::now() - begin);
    }
    shortest = std::min(shortest, longest);
  }
  done = true;
  for (std::thread& one : pollers) one.join();
  ::ibv_destroy_cq(cq);
  ::ibv_close_device(context);
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(shortest).count();
  std::printf("%s: waited for %lld us, %zu findings\n", waited < 2000 ? "in turn" : "kept waiting",
              static_cast<long long>(waited), s.finish().size());
  return 0;
}

/// An object of a session that has ended is refused.
int late_use() {
  ibv_context* context = nullptr;
  {
    shim::session s;
    context = open_first();
    static_cast<void>(s.finish());
  }
  return ::ibv_close_device(context) != 0 ? 0 : 1;
}

int handled = 0;

/// A rule's failure is one for the program's new-handler, as a real one is. A size that no multiple
/// of the alignment reaches is refused.
int new_handler() {
  shim::session s;
  s.fail(verb::allocate).with(ENOMEM);
  std::set_new_handler([] { ++handled; });
  int* const memory = new int;
  std::set_new_handler(nullptr);
  const volatile std::size_t beyond = SIZE_MAX - 8;
  void* const none = ::operator new (beyond, std::align_val_t{64}, std::nothrow);
  std::printf("%s after %d, %s\n", memory ? "allocated" : "null", handled, none ? "more" : "null");
  delete memory;
  return static_cast<int>(s.finish().size());
}

struct part {
  const char* name;
  int (*run)();
};
constexpr part parts[] = {
    {"static-context", &static_context_is_closed_at_exit},
    {"destructor-function", &destructor_function_closes_the_device},
    {"leak", &leak},
    {"children", &children_while_a_thread_polls},
    {"exit", &exit_in_a_session},
    {"clean-exit", &clean_exit_in_a_session},
    {"child-exits", &child_exits_in_a_session},
    {"cancelled", &cancelled_in_calls},
    {"destroys", &destroys_while_a_thread_waits},
    {"fcntl", &waits_in_fcntl},
    {"action", &action_throws},
    {"poller", &busy_poller},
    {"late-use", &late_use},
    {"new-handler", &new_handler},
};

}  // namespace

int main(int, char** arguments) {
  ::alarm(60);
  for (const part& one : parts)
    if (one.name == std::string_view(arguments[1])) return one.run();
  return 2;
}
