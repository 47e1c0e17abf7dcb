// What operations of the shim cost with many objects, against one promise: with 100,000 live
// objects of any kind an operation costs at most 3 times what it costs with one, and memory does
// not grow with the number of operations. Build without sanitizers and with optimization.
//
// usage: scale-bench [OBJECTS]
#include <dlfcn.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ibvxx/ibvxx.hpp>
#include <ibvxx/or_throw.hpp>
#include <ibvxx/shim.hpp>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/connect.hpp"
#include "support/every_object.hpp"

using namespace ibvxx;

namespace {

using test::every_object;
using work = std::function<void()>;
using clock_type = std::chrono::steady_clock;

std::size_t many = 100'000;
bool kept = true;

/// Whatever is not right here is not worth measuring.
void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "scale-bench: %s\n", what);
  std::abort();
}

[[nodiscard]] double since(clock_type::time_point began) {
  return std::chrono::duration<double, std::nano>(clock_type::now() - began).count();
}

/// The median of several rounds, in nanoseconds for one run. A slow operation gets fewer runs.
[[nodiscard]] double cost(const work& one) {
  std::vector<double> rounds;
  const auto began = clock_type::now();
  one();
  const double first = since(began);
  const int runs = first > 1e6 ? 1 : first > 1e5 ? 10 : 200;
  // A session remembers the latest 4096 objects that were destroyed. Every measurement begins with
  // those of its own operation, in the caches as they are when a program goes on like that.
  for (int i = 0; first <= 1e5 && i < 5000; ++i) one();
  for (int round = 0; round < 9; ++round) {
    const auto start = clock_type::now();
    for (int i = 0; i < runs; ++i) one();
    rounds.push_back(since(start) / runs);
  }
  std::nth_element(rounds.begin(), rounds.begin() + 4, rounds.end());
  return rounds[4];
}

/// Prints a row. What is faster than a few dozen nanoseconds either way is no cliff.
void row(const std::string& operation, double one, double all, double bound) {
  constexpr double noise = 60;
  const double ratio = all / one;
  const bool holds = ratio <= bound || all <= bound * one + noise;
  std::printf("%-58s %9.0f ns %11.0f ns %8.2f %6.1f%s\n", operation.c_str(), one, all, ratio, bound,
              holds ? "" : "  above its bound");
  std::fflush(stdout);
  kept = kept && holds;
}

/// Measures the operations, makes the crowd and measures them again, then destroys it again.
struct measured {
  std::string name;
  work operation;
};
void compare(const std::string& crowd, const std::vector<measured>& operations,
             const std::function<void(std::size_t)>& make, const work& destroy) {
  std::vector<double> before;
  for (const measured& one : operations) before.push_back(cost(one.operation));
  constexpr double bound = 3;
  // What disturbs a measurement only makes it slower: one above the bound is repeated.
  const auto report = [&](const char* when) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      double now = cost(operations[i].operation);
      for (int again = 0; again < 5 && now > bound * before[i]; ++again)
        now = std::min(now, cost(operations[i].operation));
      row(operations[i].name + ", " + crowd + when, before[i], now, bound);
    }
  };
  make(many);
  report(" live");
  destroy();
  report(" destroyed");
}

/// A machine without limits.
[[nodiscard]] shim::simulated vast(shim::device_behaviour behaviour = {}) {
  auto described = shim::device_description::hardware();
  described.behaviour = behaviour;
  ibv_device_attr& limits = described.limits;
  for (int* limit : {&limits.max_qp, &limits.max_cq, &limits.max_mr, &limits.max_pd, &limits.max_mw,
                     &limits.max_ah, &limits.max_srq, &limits.max_cqe})
    *limit = 1 << 30;
  described.max_dm_size = std::uint64_t{1} << 32;
  return {{described}};
}

struct recipe {
  const char* name;
  std::function<void*()> make;
  std::function<int(void*)> destroy;
};

/// How an object of each kind is made and destroyed, on the objects of `o`. Descriptors, contexts
/// and completion channels are not among them: a process has no 100,000 descriptors.
[[nodiscard]] std::vector<recipe> recipes(every_object& o) {
  const auto on = [](auto destroy) { return [destroy](void* made) { return destroy(made); }; };
  return {
      {"device list", [] { return ::ibv_get_device_list(nullptr); }, on([](void* p) {
         ::ibv_free_device_list(static_cast<ibv_device**>(p));
         return 0;
       })},
      {"PD", [&] { return ::ibv_alloc_pd(o.context.get()); },
       on([](void* p) { return ::ibv_dealloc_pd(static_cast<ibv_pd*>(p)); })},
      {"imported PD", [&] { return ::ibv_import_pd(o.context.get(), o.pd->handle); },
       on([](void* p) {
         ::ibv_unimport_pd(static_cast<ibv_pd*>(p));
         return 0;
       })},
      {"MR", [&] { return ::ibv_reg_mr(o.pd.get(), o.memory, 64, IBV_ACCESS_LOCAL_WRITE); },
       on([](void* p) { return ::ibv_dereg_mr(static_cast<ibv_mr*>(p)); })},
      {"CQ", [&] { return ::ibv_create_cq(o.context.get(), 1, nullptr, o.channel.get(), 0); },
       on([](void* p) { return ::ibv_destroy_cq(static_cast<ibv_cq*>(p)); })},
      {"TD",
       [&] {
         ibv_td_init_attr wanted{};
         return ::ibv_alloc_td(o.context.get(), &wanted);
       },
       on([](void* p) { return ::ibv_dealloc_td(static_cast<ibv_td*>(p)); })},
      {"XRCD",
       [&] {
         ibv_xrcd_init_attr wanted{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, 0, O_CREAT};
         return ::ibv_open_xrcd(o.context.get(), &wanted);
       },
       on([](void* p) { return ::ibv_close_xrcd(static_cast<ibv_xrcd*>(p)); })},
      {"MW", [&] { return ::ibv_alloc_mw(o.pd.get(), IBV_MW_TYPE_1); },
       on([](void* p) { return ::ibv_dealloc_mw(static_cast<ibv_mw*>(p)); })},
      {"DM",
       [&] {
         ibv_alloc_dm_attr wanted{64, 0, 0};
         return ::ibv_alloc_dm(o.context.get(), &wanted);
       },
       on([](void* p) { return ::ibv_free_dm(static_cast<ibv_dm*>(p)); })},
      {"SRQ",
       [&] {
         ibv_srq_init_attr wanted{nullptr, {4, 1, 0}};
         return ::ibv_create_srq(o.pd.get(), &wanted);
       },
       on([](void* p) { return ::ibv_destroy_srq(static_cast<ibv_srq*>(p)); })},
      {"QP",
       [&] {
         auto wanted = o.plain_qp(IBV_QPT_RC);
         return ::ibv_create_qp(o.pd.get(), &wanted);
       },
       on([](void* p) { return ::ibv_destroy_qp(static_cast<ibv_qp*>(p)); })},
      {"AH",
       [&] {
         auto wanted = every_object::address();
         return ::ibv_create_ah(o.pd.get(), &wanted);
       },
       on([](void* p) { return ::ibv_destroy_ah(static_cast<ibv_ah*>(p)); })},
      {"WQ",
       [&] {
         auto wanted = o.work_queue();
         return ::ibv_create_wq(o.context.get(), &wanted);
       },
       on([](void* p) { return ::ibv_destroy_wq(static_cast<ibv_wq*>(p)); })},
      {"flow",
       [&] {
         auto wanted = every_object::steering();
         return ::ibv_create_flow(o.qp.get(), &wanted);
       },
       on([](void* p) { return ::ibv_destroy_flow(static_cast<ibv_flow*>(p)); })},
      {"flow action",
       [&] {
         auto wanted = o.encryption();
         return ::ibv_create_flow_action_esp(o.context.get(), &wanted);
       },
       on([](void* p) { return ::ibv_destroy_flow_action(static_cast<ibv_flow_action*>(p)); })},
      {"counters",
       [&] {
         ibv_counters_init_attr wanted{};
         return ::ibv_create_counters(o.context.get(), &wanted);
       },
       on([](void* p) { return ::ibv_destroy_counters(static_cast<ibv_counters*>(p)); })},
      {"membership",
       [&] {
         static unsigned next = 0;
         auto* gid = new ibv_gid(every_object::group());
         ++next;
         std::memcpy(gid->raw + 4, &next, sizeof next);
         must(::ibv_attach_mcast(o.qp.get(), gid, 0) == 0, "attach_mcast");
         return gid;
       },
       [&](void* p) {
         const std::unique_ptr<ibv_gid> gid(static_cast<ibv_gid*>(p));
         return ::ibv_detach_mcast(o.qp.get(), gid.get(), 0);
       }},
  };
}

/// Two connected queue pairs for each use below.
struct link {
  unique_cq cq;
  unique_qp a, b;
  explicit link(const every_object& o) : cq(or_throw(create_cq(o.context, 16))) {
    a = test::make_rc_qp(o.pd, cq, cq);
    b = test::make_rc_qp(o.pd, cq, cq);
    const qp_address from = test::address_of(a, 0), to = test::address_of(b, 0);
    test::connect(a, from, to);
    test::connect(b, to, from);
  }
  void write(const every_object& o) const {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(o.memory), 0, 0};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    ibv_wc done;
    must(::ibv_post_send(a.get(), &wr, &bad) == 0 && ::ibv_poll_cq(cq.get(), 1, &done) == 1 &&
             done.status == IBV_WC_SUCCESS,
         "write");
  }
  /// Posts a send for which the peer has no receive.
  void send() const {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    must(::ibv_post_send(a.get(), &wr, &bad) == 0, "send");
  }
};

/// Creating and destroying a kind of object, and other operations, while many of that kind live.
/// The kind by its place among the recipes; false if there is none. Each has a session of its own,
/// so that what is measured first has little history.
bool objects_of_kind(std::size_t place) {
  shim::session s(vast(shim::device_behaviour::hardware()));
  {
    every_object o;
    const link pair(o);
    const auto kinds = recipes(o);
    if (place == kinds.size()) return false;
    const recipe& kind = kinds[place];
    const auto find = [&](const char* name) {
      return *std::find_if(kinds.begin(), kinds.end(),
                           [name](const recipe& r) { return std::strcmp(r.name, name) == 0; });
    };
    const auto once = [](const recipe& made) -> work {
      return [made] { must(made.destroy(made.make()) == 0, made.name); };
    };
    std::vector<void*> crowd;
    std::vector<measured> operations{{std::string("make and destroy ") + kind.name, once(kind)}};
    for (const char* other : {"MR", "QP", "CQ", "AH"})
      if (std::strcmp(other, kind.name) != 0)
        operations.push_back({std::string("make and destroy ") + other, once(find(other))});
    operations.push_back({"write and poll", [&] { pair.write(o); }});
    operations.push_back({"new and delete", [] { ::operator delete(::operator new(40)); }});
    operations.push_back({"epoll_create1 and close", [] { ::close(::epoll_create1(0)); }});
    operations.push_back({"reading an async event", [&] {
                            s.raise("sim0", IBV_EVENT_PORT_ACTIVE, 1);
                            ibv_async_event event;
                            must(::ibv_get_async_event(o.context.get(), &event) == 0,
                                 "get_async_event");
                            ::ibv_ack_async_event(&event);
                          }});
    double few = 0, all = 0;
    compare(
        std::to_string(many) + " " + kind.name, operations,
        [&](std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) {
            crowd.push_back(kind.make());
            must(crowd.back() != nullptr, kind.name);
          }
        },
        [&] {
          // The cost of one destroy, among a tenth of the crowd and among all.
          const auto destroy = [&](std::size_t count) {
            const auto began = clock_type::now();
            for (std::size_t i = 0; i < count; ++i, crowd.pop_back())
              must(kind.destroy(crowd.back()) == 0, kind.name);
            return since(began) / static_cast<double>(count);
          };
          all = destroy(many - many / 10);
          few = destroy(many / 10);
        });
    row(std::string("destroying ") + kind.name + ", each: of a tenth, of all", few, all, 3);
  }
  must(s.finish().empty(), "findings");
  return true;
}

/// Regions, which every operator delete looks at.
void regions() {
  shim::session s(vast());
  {
    auto list = or_throw(get_device_list());
    const unique_context context = or_throw(open_device(list[0]));
    const unique_pd pd = or_throw(alloc_pd(context));
    std::vector<char> arena(64 * (many + 1));
    std::vector<ibv_mr*> crowd;
    const auto reg = [&](std::size_t at, std::size_t length) {
      crowd.push_back(::ibv_reg_mr(pd.get(), arena.data() + at, length, IBV_ACCESS_LOCAL_WRITE));
      must(crowd.back() != nullptr, "reg_mr");
    };
    const auto clear = [&] {
      for (ibv_mr* mr : crowd) must(::ibv_dereg_mr(mr) == 0, "dereg_mr");
      crowd.clear();
    };
    const work scattered = [] {
      // Blocks at many addresses, between what is registered.
      void* blocks[8];
      for (std::size_t i = 0; i < 8; ++i) blocks[i] = ::operator new(16 + 128 * i);
      for (void* block : blocks) ::operator delete(block);
    };
    const struct {
      const char* name;
      std::function<void(std::size_t)> make;
    } layouts[] = {
        {"distinct MRs", [&](std::size_t i) { reg(64 * i, 64); }},
        {"MRs of one buffer", [&](std::size_t) { reg(0, 64); }},
        {"overlapping MRs", [&](std::size_t i) { reg(32 * i, 32 * many); }},
    };
    for (const auto& layout : layouts) {
      layout.make(0);
      compare(
          std::to_string(many) + " " + layout.name,
          {{"new and delete", scattered},
           {"reg_mr and dereg_mr",
            [&] {
              reg(64 * many, 64);
              must(::ibv_dereg_mr(crowd.back()) == 0, "dereg_mr");
              crowd.pop_back();
            }}},
          [&](std::size_t count) {
            for (std::size_t i = 1; i < count; ++i) layout.make(i);
          },
          [&] {
            clear();
            layout.make(0);
          });
      clear();
    }
  }
  must(s.finish().empty(), "findings");
}

/// Requests: with queue pairs that wait for a receive, and with receives posted in a strict
/// session.
void requests() {
  const std::size_t pairs = std::max<std::size_t>(many / 10, 1);
  shim::session s(vast(), {.strict = true});
  {
    every_object o;
    const link pair(o);
    std::vector<std::unique_ptr<link>> crowd;
    const std::size_t all = std::exchange(many, pairs);
    compare(
        std::to_string(pairs) + " waiting QPs", {{"write and poll", [&] { pair.write(o); }}},
        [&](std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) {
            crowd.push_back(std::make_unique<link>(o));
            crowd.back()->send();
          }
        },
        [&] { crowd.clear(); });
    many = all;
    const std::size_t buffers = many + 10'000;
    std::vector<char> arena(64 * buffers);
    const unique_mr mr =
        or_throw(reg_mr(o.pd, std::as_writable_bytes(std::span(arena)), IBV_ACCESS_LOCAL_WRITE));
    ibv_srq_init_attr wanted{nullptr, {static_cast<std::uint32_t>(buffers), 1, 0}};
    const unique_srq srq = or_throw(create_srq(o.pd, wanted));
    std::size_t posted = 0;
    const auto post = [&](std::size_t at) {
      ibv_sge sge{reinterpret_cast<std::uintptr_t>(arena.data() + 64 * at), 64, mr->lkey};
      ibv_recv_wr wr{at, nullptr, &sge, 1};
      ibv_recv_wr* bad = nullptr;
      must(::ibv_post_srq_recv(srq.get(), &wr, &bad) == 0, "post_srq_recv");
    };
    const work next = [&] { post(posted++); };
    const double one = cost(next);
    while (posted < many) next();
    row("strict post_recv, " + std::to_string(many) + " buffers posted", one, cost(next), 3);
    row("dereg_mr and reg_mr, " + std::to_string(many) + " receives posted", cost([&] {
          ibv_mr* other = ::ibv_reg_mr(o.pd.get(), o.memory, 64, 0);
          must(::ibv_dereg_mr(other) == 0, "dereg_mr");
        }),
        cost([&] {
          ibv_mr* other = ::ibv_reg_mr(o.pd.get(), o.memory, 64, 0);
          must(::ibv_dereg_mr(other) == 0, "dereg_mr");
        }),
        3);
  }
  must(s.finish().empty(), "findings");
}

/// Closing an unplugged device: the cost for each of its regions.
void unplugged() {
  const auto close_with = [](std::size_t count) {
    std::vector<char> memory(64);
    shim::session s(vast());
    auto list = or_throw(get_device_list());
    ibv_context* context = ::ibv_open_device(list[0]);
    ibv_pd* pd = ::ibv_alloc_pd(context);
    for (std::size_t i = 0; i < count; ++i)
      must(::ibv_reg_mr(pd, memory.data(), 64, IBV_ACCESS_LOCAL_WRITE) != nullptr, "reg_mr");
    s.unplug("sim0");
    const auto began = clock_type::now();
    must(::ibv_close_device(context) == 0, "close_device");
    const double took = since(began) / static_cast<double>(count);
    list = {};
    must(s.finish().empty(), "findings");
    return took;
  };
  row("closing an unplugged device, for each MR: of a tenth, of all", close_with(many / 10),
      close_with(many), 3);
}

/// Memory that the process uses, in MiB.
[[nodiscard]] double in_use() {
  const struct mallinfo2 now = ::mallinfo2();
  return static_cast<double>(now.uordblks + now.hblkhd) / (1 << 20);
}

void memory_row(const char* operation, std::size_t count, const work& one) {
  // What is kept of the latest operations is there before.
  for (std::size_t i = 0; i < 100'000; ++i) one();
  const double before = in_use();
  const auto began = clock_type::now();
  for (std::size_t i = 0; i < count; ++i) one();
  const double took = since(began) / static_cast<double>(count);
  const double grown = in_use() - before;
  const bool holds = grown <= 4;
  std::printf("%-58s %9zu %13.1f MiB %8.0f ns %6.1f%s\n", operation, count, grown, took, 4.0,
              holds ? "" : "  above its bound");
  std::fflush(stdout);
  kept = kept && holds;
}

void growth() {
  shim::session s(vast());
  {
    every_object o;
    const link pair(o);
    const std::size_t most = 100 * many;
    memory_row("req_notify_cq", most, [&] { ::ibv_req_notify_cq(o.cq.get(), 0); });
    memory_row("new and delete", most, [] { ::operator delete(::operator new(40)); });
    memory_row("write and poll", most / 5, [&] { pair.write(o); });
    for (const recipe& kind : recipes(o)) {
      const bool light = std::strcmp(kind.name, "AH") == 0 || std::strcmp(kind.name, "MR") == 0;
      memory_row((std::string("make and destroy ") + kind.name).c_str(),
                 light ? 20 * many : 2 * many,
                 [&] { must(kind.destroy(kind.make()) == 0, kind.name); });
    }
    memory_row("polling a destroyed CQ", many, [&, gone = [&] {
                 ibv_cq* cq = ::ibv_create_cq(o.context.get(), 1, nullptr, nullptr, 0);
                 ::ibv_destroy_cq(cq);
                 return cq;
               }()] {
      ibv_wc done;
      static_cast<void>(::ibv_poll_cq(gone, 1, &done));
    });
  }
  must(s.finish().size() == 1, "findings");
}

/// Calls without a session, against the same function of the library.
void without_session() {
  using function = const char*(ibv_wc_status);
  void* const library = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  auto* const real =
      library ? reinterpret_cast<function*>(::dlsym(library, "ibv_wc_status_str")) : nullptr;
  if (!real) return;
  const double direct = cost([real] { must(real(IBV_WC_SUCCESS) != nullptr, "status"); });
  const double through =
      cost([] { must(::ibv_wc_status_str(IBV_WC_SUCCESS) != nullptr, "status"); });
  // The look-up by name on every call, not what the promise is about.
  row("ibv_wc_status_str without a session: library, shim", direct, through, 40);
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) many = std::max(std::strtoul(arguments[1], nullptr, 10), 10UL);
  without_session();
  std::printf("%-58s %12s %14s %8s %6s\n", "operation", "with 1", "with many", "ratio", "bound");
  for (std::size_t place = 0; objects_of_kind(place); ++place) {
  }
  regions();
  requests();
  unplugged();
  std::printf("%-58s %9s %17s %11s %6s\n", "operation", "count", "memory", "each", "bound");
  growth();
  std::printf("scale: %s (limit 3 times the cost with one object, and 4 MiB)\n",
              kept ? "within its bounds" : "above a bound");
  return kept ? 0 : 1;
}
