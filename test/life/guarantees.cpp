// What the C and C++ libraries guarantee for the functions that the shim defines, without a
// session. The same program is linked with the shim and without: both print the same
// (side_by_side.sh).
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <string_view>
#include <thread>

namespace {

void* close_for_ever(void*) {
  for (;;) ::close(::dup(0));
}

void* control_for_ever(void*) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  const int fd = ::memfd_create("locked", MFD_CLOEXEC);
  for (;;) ::fcntl(fd, F_SETLKW, &whole);
}

void cancel(void* (*run)(void*)) {
  pthread_t thread{};
  ::pthread_create(&thread, nullptr, run, nullptr);
  ::usleep(20'000);
  ::pthread_cancel(thread);
  void* result = nullptr;
  ::pthread_join(thread, &result);
  std::printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "ended");
}

void cancelled_in_close() {
  cancel(&close_for_ever);
}

void cancelled_in_fcntl() {
  cancel(&control_for_ever);
}

void close_in_a_signal_handler() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    const int saved = errno;
    for (int i = 0; i < 100; ++i) ::close(::dup(0));
    errno = saved;
  };
  ::sigaction(SIGALRM, &action, nullptr);
  const pthread_t self = ::pthread_self();
  std::atomic<bool> done{false};
  std::thread sender([&] {
    while (!done) {
      ::pthread_kill(self, SIGALRM);
      ::usleep(100);
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    delete new int(i);
    ::close(::dup(0));
  }
  done = true;
  sender.join();
  std::puts("done");
}

/// Ends the child if it hangs.
[[nodiscard]] pid_t fork_with_deadline() {
  const pid_t child = ::fork();
  if (child == 0) ::alarm(5);
  return child;
}

void children_of_threads() {
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done) {
      ::close(::dup(0));
      delete new int;
    }
  });
  int ended = 0;
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork_with_deadline();
    if (child == 0) {
      ::close(::dup(0));
      delete new int;
      if (i % 2 == 0) ::_exit(0);
      ::execl("/bin/true", "true", nullptr);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ended += status == 0 ? 1 : 0;
  }
  done = true;
  busy.join();
  std::printf("%d children ended\n", ended);
}

int handled = 0;

void new_handler_is_called() {
  std::set_new_handler([] {
    if (++handled == 3) throw std::bad_alloc();
  });
  const volatile std::size_t much = PTRDIFF_MAX;
  try {
    ::operator delete(::operator new(much));
    std::puts("allocated");
  } catch (const std::bad_alloc&) {
    std::printf("bad_alloc after %d\n", handled);
  }
  handled = 0;
  void* const none = ::operator new(much, std::nothrow);
  std::printf("%s after %d\n", none ? "allocated" : "null", handled);
  std::set_new_handler(nullptr);
}

void errno_of_failures() {
  const auto tell = [](const char* what, int result) {
    std::printf("%s %d %s\n", what, result, std::strerror(errno));
  };
  errno = 0;
  tell("close", ::close(-1));
  errno = 0;
  tell("fcntl", ::fcntl(-1, F_GETFD));
  errno = 0;
  tell("epoll_create1", ::epoll_create1(-1));
  errno = 0;
  tell("epoll_ctl", ::epoll_ctl(-1, EPOLL_CTL_ADD, 0, nullptr));
  errno = 0;
  tell("munmap", ::munmap(reinterpret_cast<void*>(1), 1));
  errno = 7;
  const int fd = ::dup(0);
  tell("a close that succeeds", ::close(fd));
  errno = 7;
  delete new int;
  tell("operator delete", 0);
}

struct announcing {
  const char* name;
  ~announcing() { std::printf("~%s\n", name); }
};
[[gnu::destructor]] void destructor_function() {
  delete new int;
  ::close(::dup(0));
  std::puts("destructor function");
  std::fflush(stdout);
}

void order_at_exit() {
  static const announcing first{"static object"};
  std::atexit([] { std::puts("atexit handler"); });
  static const announcing second{"second static object"};
  thread_local const announcing third{"thread-local object"};
  std::printf("%s, %s, %s\n", first.name, second.name, third.name);
  std::exit(3);
}

struct part {
  const char* name;
  void (*run)();
};
constexpr part parts[] = {
    {"a thread is cancelled in close", &cancelled_in_close},
    {"a thread is cancelled in fcntl", &cancelled_in_fcntl},
    {"close in a signal handler", &close_in_a_signal_handler},
    {"children of a process with threads", &children_of_threads},
    {"the new-handler is called", &new_handler_is_called},
    {"errno of failures", &errno_of_failures},
    {"the order at exit", &order_at_exit},
};

}  // namespace

int main(int count, char** arguments) {
  ::alarm(30);
  for (const part& one : parts)
    if (count == 1)
      std::puts(one.name);
    else if (one.name == std::string_view(arguments[1]))
      one.run();
  return 0;
}
