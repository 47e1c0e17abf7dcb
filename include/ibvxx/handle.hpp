// The owner of a verbs object, and a non-owning reference to one.
#pragma once

#include <cerrno>
#include <cstddef>
#include <ibvxx/result.hpp>
#include <ibvxx/teardown.hpp>
#include <type_traits>
#include <utility>

namespace ibvxx::inline IBVXX_RESULT_KIND {

/// A move-only owner of one object, the size of `Pointer`. `Deleter` is a stateless type with
///   static constexpr Pointer empty           the value that means "owns nothing"
///   static int destroy(Pointer) noexcept     0, or the errno: the object is still alive then
///   static error explain(Pointer, int)       the error for it; called only after a failure
/// An empty owner calls nothing. Not synchronised: one thread at a time, as with std::unique_ptr.
template <class Pointer, class Deleter>
class [[nodiscard]] unique_handle {
 public:
  using pointer = Pointer;
  using deleter_type = Deleter;

  constexpr unique_handle() noexcept = default;
  /// Adopts an object that has no other owner (or Deleter::empty).
  constexpr explicit unique_handle(Pointer adopted) noexcept : object_(adopted) {}
  constexpr unique_handle(unique_handle&& other) noexcept : object_(other.release()) {}
  /// Destroys the present object, then takes the other's. A failed destroy is passed to the
  /// teardown handler.
  unique_handle& operator=(unique_handle&& other) noexcept {
    if (this != &other) {
      destroy_or_report();
      object_ = other.release();
    }
    return *this;
  }
  unique_handle(const unique_handle&) = delete;
  unique_handle& operator=(const unique_handle&) = delete;
  /// Destroys the object. Never throws, keeps errno, and passes a failed destroy to the teardown
  /// handler.
  ~unique_handle() { destroy_or_report(); }

  /// Destroys the object. After a failure the owner still owns it, and the call can be repeated. An
  /// empty owner succeeds.
  [[nodiscard]] result<void> reset() noexcept {
    if (object_ != Deleter::empty) {
      if (const int code = Deleter::destroy(object_); code != 0) [[unlikely]]
        return failure(Deleter::explain(object_, code));
      object_ = Deleter::empty;
    }
    return {};
  }

  /// Gives the object up without destroying it; the caller owns it from then on.
  [[nodiscard]] constexpr Pointer release() noexcept {
    return std::exchange(object_, Deleter::empty);
  }

  [[nodiscard]] constexpr Pointer get() const noexcept { return object_; }
  [[nodiscard]] constexpr Pointer operator->() const noexcept requires std::is_pointer_v<Pointer> {
    return object_;
  }
  [[nodiscard]] constexpr explicit operator bool() const noexcept {
    return object_ != Deleter::empty;
  }

  constexpr void swap(unique_handle& other) noexcept { std::swap(object_, other.object_); }
  friend constexpr void swap(unique_handle& a, unique_handle& b) noexcept { a.swap(b); }

 private:
  void destroy_or_report() noexcept {
    if (object_ == Deleter::empty) return;
    const int saved = errno;
    if (const int code = Deleter::destroy(object_); code != 0) [[unlikely]]
      detail::report_teardown(Deleter::explain(object_, code));
    errno = saved;
  }

  Pointer object_ = Deleter::empty;
};

/// The common part of the deleters of verbs objects. `Destroyer` supplies `destroy`, and `users`:
/// what may still use the object, for the message of an EBUSY. Every verbs object except a context
/// has a member `context`.
template <class Destroyer, class Object, verb Call>
struct object_deleter {
  static constexpr verb call = Call;
  static constexpr Object* empty = nullptr;

  [[nodiscard, gnu::cold]] static error explain(Object* object, int code) noexcept {
    error e(Call, code);
    e.on(object->context);
    if (e.code() == EBUSY) e.explain("still used by %s", Destroyer::users);
    return e;
  }

  /// Serves std::unique_ptr<Object, Destroyer>.
  void operator()(Object* object) const noexcept {
    unique_handle<Object*, Destroyer> destroyed_here(object);
  }
};

/// A non-owning reference to a verbs object, used as a parameter type. It converts implicitly from
/// an owner or a raw pointer, never from a temporary owner or from nullptr. The functions that
/// create, query and modify return EINVAL for a raw pointer that is null at run time; on the data
/// path it must not be null.
template <class T>
class ref {
 public:
  constexpr ref(T* object) noexcept : object_(object) {}
  constexpr ref(std::nullptr_t) = delete;
  template <class Deleter>
  constexpr ref(const unique_handle<T*, Deleter>& owner) noexcept : object_(owner.get()) {}
  template <class Deleter>
  constexpr ref(const unique_handle<T*, Deleter>&& temporary) = delete;

  [[nodiscard]] constexpr T* get() const noexcept { return object_; }
  [[nodiscard]] constexpr T* operator->() const noexcept { return object_; }

 private:
  T* object_;
};

}  // namespace ibvxx::inline IBVXX_RESULT_KIND
