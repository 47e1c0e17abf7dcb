// The owner and the view, on a type of the test's own.
#include <unistd.h>

#include "suite.hpp"
#include "support/teardown.hpp"

namespace ibvxx::handle_test {

namespace {

struct thing {
  ibv_context* context = nullptr;
  int destroyed = 0;
  int refuse_with = 0;
};

struct thing_deleter : object_deleter<thing_deleter, thing, verb::dealloc_pd> {
  static constexpr const char* users = "another thing";
  static int destroy(thing* object) noexcept {
    errno = 99;  // as a verb may
    if (object->refuse_with != 0) return object->refuse_with;
    ++object->destroyed;
    return 0;
  }
};
using unique_thing = unique_handle<thing*, thing_deleter>;

}  // namespace

static_assert(sizeof(unique_cq) == sizeof(void*));
static_assert(sizeof(unique_fd) == sizeof(int));
static_assert(!std::is_copy_constructible_v<unique_pd>);
static_assert(!std::is_copy_assignable_v<unique_pd>);
static_assert(std::is_nothrow_move_constructible_v<unique_pd>);
static_assert(std::is_nothrow_move_assignable_v<unique_pd>);
static_assert(std::is_nothrow_swappable_v<unique_pd>);
static_assert(!std::is_convertible_v<ibv_pd*, unique_pd>);
static_assert(!std::is_convertible_v<unique_pd, bool>);
static_assert(std::is_constructible_v<bool, unique_pd>);
static_assert(std::is_convertible_v<ibv_pd*, ref<ibv_pd>>);
static_assert(std::is_convertible_v<unique_pd&, ref<ibv_pd>>);
static_assert(std::is_convertible_v<const unique_pd&, ref<ibv_pd>>);
static_assert(!std::is_convertible_v<unique_pd, ref<ibv_pd>>);
static_assert(!std::is_convertible_v<std::nullptr_t, ref<ibv_pd>>);
static_assert(!std::is_convertible_v<unique_cq&, ref<ibv_pd>>);
static_assert(sizeof(std::unique_ptr<ibv_pd, pd_deleter>) == sizeof(void*));

TEST_CASE("an owner destroys once, and keeps errno") {
  thing t;
  errno = 7;
  { const unique_thing owner(&t); }
  CHECK(t.destroyed == 1);
  CHECK(errno == 7);
}

TEST_CASE("an empty owner calls nothing") {
  unique_thing owner;
  CHECK_FALSE(owner);
  CHECK(owner.reset());
  CHECK(owner.get() == nullptr);
}

TEST_CASE(
    "reset() that fails keeps the object and returns the error; repeated, it succeeds; then it "
    "does nothing") {
  thing t;
  t.refuse_with = EBUSY;
  unique_thing owner(&t);
  const auto refused = owner.reset();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() ==
        "ibv_dealloc_pd: Device or resource busy (EBUSY): still used by another thing");
  CHECK(owner.get() == &t);
  t.refuse_with = 0;
  CHECK(owner.reset());
  CHECK_FALSE(owner);
  CHECK(owner.reset());
  CHECK(t.destroyed == 1);
}

TEST_CASE("a negative errno from a destroy is normalised") {
  thing t;
  t.refuse_with = -EBUSY;
  unique_thing owner(&t);
  CHECK(owner.reset().error().code() == EBUSY);
  t.refuse_with = 0;
}

TEST_CASE(
    "a failed destroy in the destructor is reported to the teardown handler, once, with errno "
    "kept") {
  const test::teardown_catcher teardown;
  thing t;
  t.refuse_with = EBUSY;
  errno = 7;
  { const unique_thing owner(&t); }
  CHECK(errno == 7);
  REQUIRE(teardown.count() == 1);
  CHECK(teardown[0].call() == verb::dealloc_pd);
  CHECK(teardown[0].code() == EBUSY);
}

TEST_CASE("move assignment destroys the old object first, then takes; a self-move is harmless") {
  thing a, b;
  unique_thing owner(&a);
  owner = unique_thing(&b);
  CHECK(a.destroyed == 1);
  CHECK(b.destroyed == 0);
  CHECK(owner.get() == &b);
  unique_thing& self = owner;
  owner = std::move(self);
  CHECK(owner.get() == &b);
  CHECK(b.destroyed == 0);
  unique_thing other = std::move(owner);
  CHECK_FALSE(owner);
  CHECK(other.get() == &b);
}

TEST_CASE(
    "move assignment onto an object whose destroy fails reports that and still takes the new one") {
  const test::teardown_catcher teardown;
  thing a, b;
  a.refuse_with = EIO;
  unique_thing owner(&a);
  owner = unique_thing(&b);
  CHECK(owner.get() == &b);
  CHECK(teardown.count() == 1);
}

TEST_CASE("release() gives up ownership without destroying; swap exchanges") {
  thing a, b;
  unique_thing x(&a), y(&b);
  swap(x, y);
  CHECK(x.get() == &b);
  CHECK(y->destroyed == 0);
  CHECK(x.release() == &b);
  CHECK(y.release() == &a);
  CHECK(a.destroyed + b.destroyed == 0);
}

TEST_CASE("the named deleters serve std::unique_ptr, and report a failure likewise") {
  const test::teardown_catcher teardown;
  thing t;
  { const std::unique_ptr<thing, thing_deleter> owner(&t); }
  CHECK(t.destroyed == 1);
  t.refuse_with = EBUSY;
  { const std::unique_ptr<thing, thing_deleter> owner(&t); }
  CHECK(teardown.count() == 1);
}

TEST_CASE("the teardown handler can be replaced and restored") {
  const teardown_handler mine = [](const error&) noexcept {};
  const teardown_handler standard = set_teardown_handler(mine);
  CHECK(set_teardown_handler(nullptr) == mine);
  CHECK(set_teardown_handler(standard) == standard);
}

TEST_CASE("the default teardown handler writes one line to standard error") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const int terminal = ::dup(STDERR_FILENO);
  REQUIRE(::dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
  thing t;
  t.refuse_with = EBUSY;
  { const unique_thing owner(&t); }
  REQUIRE(::dup2(terminal, STDERR_FILENO) == STDERR_FILENO);
  char text[512];
  const auto length = ::read(ends[0], text, sizeof text);
  REQUIRE(length > 0);
  CHECK(
      std::string(text, static_cast<std::size_t>(length)) ==
      "ibvxx: leaked in a destructor: ibv_dealloc_pd: Device or resource busy (EBUSY): still used "
      "by another thing\n");
  for (const int fd : {ends[0], ends[1], terminal}) ::close(fd);
}

TEST_CASE("a std::shared_ptr with a named deleter destroys with its last copy") {
  thing t;
  auto first = std::shared_ptr<thing>(unique_thing(&t).release(), thing_deleter{});
  auto second = first;
  first.reset();
  CHECK(t.destroyed == 0);
  second.reset();
  CHECK(t.destroyed == 1);
}

}  // namespace ibvxx::handle_test
